package audit_test

import (
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
)

func TestObjectsListsAllKinds(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("event.go")
	if err != nil {
		t.Fatal(err)
	}
	var declared []sluice.Object
	for _, found := range regexp.MustCompile(`(?m)^\tObject\w+ +sluice\.Object = "(\w+)"`).FindAllSubmatch(source, -1) {
		declared = append(declared, sluice.Object(found[1]))
	}
	if !slices.Equal(audit.Objects(), declared) || len(declared) < 10 {
		t.Errorf("the list has %v, declared are %v", audit.Objects(), declared)
	}
}
