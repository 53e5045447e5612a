package engine

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/sluice-queue/sluice"
)

// refEnding matches the end of a ref that names a generation or an attempt. The last part of an id is longer.
var refEnding = regexp.MustCompile(`-[ag][0-9]{1,5}$`)

// RefOf returns the ref of a job's next run. The setting `run_ref` is its template, with {queue}, {type}, {id}, {key} and
// {tenant}; a job without a key uses its id for {key}. A later generation or attempt has an ending of its own. The ref depends
// on nothing else, so every process computes the same one.
func RefOf(j sluice.Job, s sluice.Settings) string {
	template := s.RunRef
	if template == "" {
		template = sluice.DefaultRunRef
	}
	key := j.Key
	if key == "" {
		key = j.ID.String()
	}
	ref := strings.NewReplacer(
		"{queue}", j.Queue, "{type}", TargetOf(j.Queue, s).Type, "{id}", j.ID.String(), "{key}", key, "{tenant}", j.Tenant,
	).Replace(template)
	if j.Generation > 1 || refEnding.MatchString(ref) { // a key with such an ending must not equal the ref of another job
		ref += "-g" + strconv.Itoa(max(j.Generation, 1))
	}
	if j.Attempts > 0 {
		ref += "-a" + strconv.Itoa(j.Attempts+1)
	}
	return ref
}
