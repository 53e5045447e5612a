package sluice

import (
	"strings"
)

// DefaultRunRef is the template of refs for which the settings of a queue say none.
const DefaultRunRef = "{queue}-{id}"

// refFields are what a template of refs may name.
var refFields = []string{"{queue}", "{type}", "{id}", "{key}", "{tenant}"}

// checkRef says which rule a template of refs breaks: jobs of a queue must have refs of their own.
func checkRef(template string) error {
	rest := template
	for _, field := range refFields {
		rest = strings.ReplaceAll(rest, field, "")
	}
	switch {
	case template == "":
		return nil
	case strings.ContainsAny(rest, "{}"):
		return invalid("run_ref", "it may name "+strings.Join(refFields, ", "))
	case !strings.Contains(template, "{id}") && !strings.Contains(template, "{key}"):
		return invalid("run_ref", "it must name {id} or {key}, or jobs would have the same ref")
	}
	return nil
}
