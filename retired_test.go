package sluice_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// retired are names that Sluice gave up for the field's standard terms, and what to write instead. docs/words.md has the
// terms. Only the changelog may name them.
var retired = map[string]string{
	`\bin_flight_limit\b|\bInFlightLimit\b`:  "concurrency",
	`\btenant_capacity\b|\bTenantCapacity\b`: "tenant_concurrency",
	`(?i)\bstray[ _]?runs?\b`:                "orphan run",
	`\bGlance\b`:                             "Depth with a limit",
	`\bIntend\b`:                             "RecordIntent",
	`\.Beat\(|\.Leave\(`:                     "Heartbeat, Deregister",
	`\bPruneJobs\b|dead discard`:             "DeleteJobs, dead delete",
	`\bTellQueue\b|\bTellingsOf\b`:           "RecordQueueChange, QueueChanges",
	`\bsluice\.beat\b|\bbeat\.sql\b`:         "heartbeat",
	`\bmend_\w+`:                             "repair_",
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
	`[«»]`:                                                                "backticks for code, straight quotes for words",
}

func TestRetiredNamesStayAway(t *testing.T) {
	t.Parallel()
	patterns := make(map[*regexp.Regexp]string, len(retired))
	for pattern, instead := range retired {
		patterns[regexp.MustCompile(pattern)] = instead
	}
	// These read or check texts with guillemets.
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
			for pattern, instead := range patterns {
				found := pattern.FindString(string(text))
				if found == "" || strings.ContainsAny(found, "«»") && (quoting[path] || strings.HasPrefix(path, "deadletter/")) {
					continue
				}
				t.Errorf("%s has %q: write %s", path, found, instead)
			}
		}
	}
}
