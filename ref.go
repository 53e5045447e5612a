package sluice

import (
	"regexp"
	"strconv"
	"strings"
)

// DefaultRunRef is the template of refs for which the settings of a queue say none.
const DefaultRunRef = "{queue}-{id}"

// refEnding is how refs end that tell of a life or an attempt. The last part of an id is longer.
var refEnding = regexp.MustCompile(`-[ag][0-9]{1,5}$`)

// refFields are what a template of refs may name.
var refFields = []string{"{queue}", "{type}", "{id}", "{key}", "{tenant}"}

// RefOf names the run of a job: by the queue's template, in which {queue}, {type}, {id}, {key} and {tenant} stand for
// the job's, and by its life and attempt where these are not the first. A job without a key has its id there. The name
// depends on nothing else, so that whoever asks for the run names it alike.
func RefOf(j Job, s Settings) string {
	template := s.RunRef
	if template == "" {
		template = DefaultRunRef
	}
	key := j.Key
	if key == "" {
		key = j.ID.String()
	}
	ref := strings.NewReplacer(
		"{queue}", j.Queue, "{type}", TargetOf(j.Queue, s).Type, "{id}", j.ID.String(), "{key}", key, "{tenant}", j.Tenant,
	).Replace(template)
	if j.Generation > 1 || refEnding.MatchString(ref) { // a key that ends as if it had one must not be another's
		ref += "-g" + strconv.Itoa(max(j.Generation, 1))
	}
	if j.Attempts > 0 {
		ref += "-a" + strconv.Itoa(j.Attempts+1)
	}
	return ref
}

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
