package sqlite_test

import (
	"testing"

	"github.com/sluice-queue/sluice"
)

func TestX(t *testing.T) {
	t.Parallel()
	store := openStore(t, t.TempDir()+"/a.db")
	health, err := sluice.HealthOf(t.Context(), store, sluice.HealthOptions{Thorough: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range health.Findings {
		t.Logf("%+v", f)
	}
	for _, f := range health.Figures {
		t.Logf("%+v", f)
	}
}
func BenchmarkHealth(b *testing.B) {
	t := &testing.T{}
	_ = t
}
