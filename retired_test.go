package sluice_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// retired are names that Sluice gave up for the field's standard terms, and what to write instead. docs/words.md has the
// terms. Only the changelog may name them.
var retired = map[string]string{
	`\bin_flight_limit\b|\bInFlightLimit\b`:      "concurrency",
	`\btenant_capacity\b|\bTenantCapacity\b`:     "tenant_concurrency",
	`\bstray[ _]?runs?\b|\bStray[ _]?[Rr]uns?\b`: "orphan run",
	`\bGlance\b`:                     "Depth with a limit",
	`\bIntend\b`:                     "RecordIntent",
	`\.Beat\(|\.Leave\(`:             "Heartbeat, Deregister",
	`\bPruneJobs\b|dead discard`:     "DeleteJobs, dead delete",
	`\bTellQueue\b|\bTellingsOf\b`:   "RecordQueueChange, QueueChanges",
	`\bsluice\.beat\b|\bbeat\.sql\b`: "heartbeat",
	`\bmend_\w+`:                     "repair_",
	`\bsluice[._]line\b|\bin_line\b|\blive_line\b|\bflow\.Lines?\b`: "tenant_queue, in_tenant_queue, TenantQueue",
	`sluice\.hint\b|\bhinted\b`:                                     "tenant_change, tenant_changed",
	`\bexplain\.Gate\b|"gates"`:                                     "Reason",
	`\bchanges\.Plans?\b|settings (un)?plans?\b|queue\.plans`:       "changes.Change, settings scheduled, unschedule",
	`sluice waves\b`: "sluice forecast",
	`sluice\.(Engine|Run[A-Z]\w+|ErrEngine\w+)\b`:                         "package engine",
	`sluice\.(Holder|Condition\w*|Role[A-Z]\w+)\b`:                        "package presence",
	`\bJobFilter\.Mark\b|\bBadMark\b`:                                     "Cursor",
	`\bUntold\b|\bToldForAudit\b`:                                         "Unrecorded, RecordedForAudit",
	`\bOutlook\b`:                                                         "explain.Position",
	`\bFiguresOf\b|health\.Figure\b`:                                      "health.MetricsOf, health.Metric",
	`holders[_-]in[_-]trouble`:                                            "holders_with_conditions, not notified",
	`\bturns_since\b|\bmark_turn\b|\blook_again\b|\blooked_at\b.*evaluat`: "fair_since, low_water, recheck, evaluated_at",
	`\blane struct\b|\*lane\b`:                                            "servedQueue",
	`«|»`:                                                                 "backticks for code, straight quotes for words",
}

func TestRetiredNamesStayAway(t *testing.T) {
	t.Parallel()
	// These files write or check guillemets.
	quoting := map[string]bool{"cmd/cli/docs_inline_test.go": true, "cmd/cli/docs_test.go": true, "english_test.go": true, "move/world_test.go": true}
	for _, suffix := range []string{".go", ".sql", ".md", ".txt"} {
		for _, path := range sourceFiles(t, suffix) {
			if path == "retired_test.go" || path == "CHANGELOG.md" || path == "docs/words.md" {
				continue
			}
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			for pattern, instead := range retired {
				found := firstOf(pattern, string(text))
				if found == "" || strings.ContainsAny(found, "«»") && (quoting[path] || strings.HasPrefix(path, "deadletter/")) {
					continue
				}
				t.Errorf("%s has %q: write %s", path, found, instead)
			}
		}
	}
}

// beginnings are the alternatives of each pattern without the word boundary before them. Go looks for those that begin with a
// letter a hundred times faster.
var beginnings = func() map[string][]*regexp.Regexp {
	out := make(map[string][]*regexp.Regexp, len(retired))
	for pattern := range retired {
		for _, alternative := range alternatives(pattern) {
			out[pattern] = append(out[pattern], regexp.MustCompile(strings.TrimPrefix(alternative, `\b`)))
		}
	}
	return out
}()

// alternatives splits a pattern at the bars outside of parentheses.
func alternatives(pattern string) (out []string) {
	depth, from := 0, 0
	for i, r := range pattern {
		switch {
		case r == '(':
			depth++
		case r == ')':
			depth--
		case r == '|' && depth == 0:
			out, from = append(out, pattern[from:i]), i+1
		}
	}
	return append(out, pattern[from:])
}

// firstOf returns a place in a text that a pattern fits, or nothing.
func firstOf(pattern, text string) string {
	if !slices.ContainsFunc(beginnings[pattern], func(r *regexp.Regexp) bool { return r.MatchString(text) }) {
		return ""
	}
	return regexp.MustCompile(pattern).FindString(text)
}
