package near_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/near"
)

func TestAMisspeltNameFindsItsNeighbours(t *testing.T) {
	t.Parallel()
	names := []string{"queue", "tenant", "limit", "label", "lease", "rate", "concurrency", "payload_limit"}
	for wrong, want := range map[string]string{"leese": "lease", "laese": "lease", "limits": "limit", "concurency": "concurrency", "payload": "payload_limit", "tennant": "tenant", "colour": "", "": "", "x": ""} {
		got := near.Meant(wrong, names, 3)
		if want == "" && len(got) > 0 || want != "" && (len(got) == 0 || got[0] != want) {
			t.Errorf("%q may mean %q, want %q first", wrong, got, want)
		}
	}
	if got := near.Names("leese", names, 3); len(got) != 3 || got[0] != "lease" {
		t.Errorf("the nearest of leese are %q", got)
	}
	if got := near.Names("leese", nil, 3); len(got) != 0 {
		t.Errorf("of no names the nearest are %q", got)
	}
	if !slices.Equal(names[:2], []string{"queue", "tenant"}) {
		t.Error("the names were sorted in place")
	}
}

func TestAnUnknownSettingNamesThreeOthers(t *testing.T) {
	t.Parallel()
	if setting, err := near.Setting("lease"); err != nil || setting.Name != "lease" {
		t.Errorf("lease is %q, %v", setting.Name, err)
	}
	_, err := near.Setting("leese")
	if !errors.Is(err, sluice.ErrNotFound) || !strings.Contains(err.Error(), "the nearest are lease, ") || strings.Count(err.Error(), ",") != 2 {
		t.Errorf("of leese it says: %v", err)
	}
}
