// The page is complete without this: it only adds a field that narrows the contents down.
const field = document.getElementById("find");
field.parentElement.hidden = false;
field.addEventListener("input", () => {
  const wanted = field.value.toLowerCase();
  for (const link of document.querySelectorAll("nav a[data-search]")) {
    link.hidden = !link.dataset.search.toLowerCase().includes(wanted);
  }
});
