package sluice

import (
	"strconv"
	"testing"
)

func TestTextOfSettingsIsReadOnceAndFewAreRemembered(t *testing.T) {
	t.Parallel()
	reader := recordedReader{read: make(map[string]Settings)}
	text := func(limit int) string { return `{"concurrency": ` + strconv.Itoa(limit) + `}` }
	for limit := range 2*maxRecordedTexts + 1 {
		for range 2 {
			want := DefaultSettings()
			want.Concurrency = limit
			if settings, ok := reader.settings(text(limit)); !ok || settings != want {
				t.Fatalf("%s stands for %+v, %t; want %+v", text(limit), settings, ok, want)
			}
		}
		if _, remembered := reader.read[text(limit)]; !remembered || len(reader.read) > maxRecordedTexts {
			t.Fatalf("after %s: remembered %t, among %d", text(limit), remembered, len(reader.read))
		}
	}
	for _, text := range []string{"", "{", `{"concurrency": "many"}`} {
		if settings, ok := reader.settings(text); ok || settings != DefaultSettings() {
			t.Errorf("%q stands for %+v, %t", text, settings, ok)
		}
	}
}
