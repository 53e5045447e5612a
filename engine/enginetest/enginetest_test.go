package enginetest_test

import (
	"strings"
	"testing"

	"github.com/sluice-queue/sluice/engine/enginetest"
)

func TestRulesAreNumberedOnceAndSaySomething(t *testing.T) {
	t.Parallel()
	seen := make(map[string]bool)
	for _, rule := range enginetest.Rules() {
		if seen[rule.ID] {
			t.Errorf("%s is used twice", rule.ID)
		}
		seen[rule.ID] = true
		if len(strings.Fields(rule.Summary)) < 4 || !strings.HasSuffix(rule.Summary, ".") {
			t.Errorf("%s does not say a sentence: %q", rule.ID, rule.Summary)
		}
		if rule.Because == "" {
			t.Errorf("%s says nobody who asks for it", rule.ID)
		}
	}
}
