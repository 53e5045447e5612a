package sluice_test

import (
	"encoding/json"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/operation"
)

func TestRatesAreReadAsPeopleWriteThem(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]sluice.Rate{
		"500/5s": {Jobs: 500, Per: 5 * time.Second}, "100": {Jobs: 100, Per: time.Second}, " 100 / s ": {Jobs: 100, Per: time.Second},
		"0": {}, "0/s": {}, "20/m": {Jobs: 20, Per: time.Minute}, "1/90s": {Jobs: 1, Per: 90 * time.Second},
		"1200/1m": {Jobs: 1200, Per: time.Minute}, "7/2d": {Jobs: 7, Per: 48 * time.Hour}, "1e3/s": {Jobs: 1000, Per: time.Second},
		"0.5": {Jobs: 1, Per: 2 * time.Second}, "2.5/s": {Jobs: 5, Per: 2 * time.Second}, "0.02/s": {Jobs: 1, Per: 50 * time.Second},
	} {
		if rate, err := sluice.ParseRate(text); err != nil || rate != want {
			t.Errorf("%q reads as %s, %v, want %s", text, rate, err, want)
		}
	}
	for _, text := range []string{"", "/", "fast", "100/", "100/0s", "100/-1s", "100/parsec", "NaN", "Inf", "1/s/s", "-1/s", "1/1us"} {
		if rate, err := sluice.ParseRate(text); err == nil {
			t.Errorf("%q reads as %s, want an error", text, rate)
		}
	}
}

// TestEveryRateIsReadAsItIsWritten writes and reads random rates as text, as JSON, as columns of stores and as
// settings.
func TestEveryRateIsReadAsItIsWritten(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		rate := sluice.Rate{Jobs: rapid.IntRange(1, 1_000_000).Draw(t, "jobs")}
		rate.Per = time.Duration(rapid.IntRange(max(1, rate.Jobs/1000), 10*86_400_000).Draw(t, "milliseconds")) * time.Millisecond
		if again, err := sluice.ParseRate(rate.String()); err != nil || again != rate {
			t.Fatalf("%+v is written as %s, which reads as %+v, %v", rate, rate, again, err)
		}
		perSecond, millis := rate.Columns()
		if again := sluice.StoredRate(*perSecond, *millis); again != rate {
			t.Fatalf("%s is stored as %v and %d, which reads as %s", rate, *perSecond, *millis, again)
		}
		settings := sluice.DefaultSettings()
		settings.Rate = rate
		text, err := json.Marshal(settings)
		if err != nil {
			t.Fatal(err)
		}
		again := sluice.DefaultSettings()
		if err := json.Unmarshal(text, &again); err != nil || again != settings {
			t.Fatalf("settings with %s are written as %s, which reads as %+v, %v", rate, text, again, err)
		}
	})
}

// TestRatesOfOlderProgramsAreRead reads a rate as older programs wrote it: as jobs per second in JSON, and as a column
// without a window.
func TestRatesOfOlderProgramsAreRead(t *testing.T) {
	t.Parallel()
	var operation operation.Operation
	if err := json.Unmarshal([]byte(`{"rate": 20}`), &operation); err != nil || operation.Rate.String() != "20/s" {
		t.Errorf("an operation's rate of 20 reads as %s, %v", operation.Rate, err)
	}
	for perSecond, want := range map[float64]string{0: "0", 100: "100/s", 0.5: "1/2s", 1.0 / 3: "1/3s", 2.5: "5/2s", 1e6 / 3: "333333333/16m40s"} {
		if got := sluice.StoredRate(perSecond, 1000).String(); got != want {
			t.Errorf("%g a second reads as %s, want %s", perSecond, got, want)
		}
	}
}
