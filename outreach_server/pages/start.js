// Addresses are relative, so that the page works wherever the server is mounted.
SwaggerUIBundle({
  url: "openapi.yaml",
  dom_id: "#contract",
  deepLinking: true,
  displayRequestDuration: true,
  validatorUrl: null, // by default the contract would be shown to somebody else's server
});
