// Stands for gopkg.in/validator.v2, which the generated code names for what it reads of several forms. Modules of Go come
// from a place that need not be reachable; without it such a value is not checked against its patterns.
package validator

// Validate takes everything.
func Validate(v interface{}) error { return nil }
