package storing

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/sluice-queue/sluice"
)

// AfterText writes a job's failure rules as stores keep them: the rule, and behind it each exception as ID=RULE, sorted. Empty:
// the job runs after no other.
func AfterText(rule sluice.AfterFailure, of map[sluice.ID]sluice.AfterFailure) string {
	var exceptions []string
	for id, own := range of {
		if own != "" {
			exceptions = append(exceptions, " "+id.String()+"="+string(own))
		}
	}
	slices.Sort(exceptions)
	return string(rule) + strings.Join(exceptions, "")
}

// AfterRules reads the failure rules of AfterText.
func AfterRules(text string) (rule sluice.AfterFailure, of map[sluice.ID]sluice.AfterFailure, err error) {
	first, exceptions, more := strings.Cut(text, " ")
	if !more {
		return sluice.AfterFailure(first), nil, nil
	}
	of = make(map[sluice.ID]sluice.AfterFailure)
	for exception := range strings.FieldsSeq(exceptions) {
		name, rule, _ := strings.Cut(exception, "=")
		id, err := sluice.ParseID(name)
		if err != nil {
			return "", nil, fmt.Errorf("failure rules of a job: %w", err)
		}
		of[id] = sluice.AfterFailure(rule)
	}
	return sluice.AfterFailure(first), of, nil
}

// AfterRule returns a job's failure rule for a job that it runs after.
func AfterRule(rule sluice.AfterFailure, of map[sluice.ID]sluice.AfterFailure, id sluice.ID) sluice.AfterFailure {
	if own := of[id]; own != "" {
		return own
	}
	return rule
}

// AfterTwin returns failure rules in which the job that holds its key stands for a duplicate.
func AfterTwin(of map[sluice.ID]sluice.AfterFailure, id, twin sluice.ID) map[sluice.ID]sluice.AfterFailure {
	rule := of[id]
	if rule == "" {
		return of
	}
	of = maps.Clone(of)
	delete(of, id)
	of[twin] = rule
	return of
}
