package sluice_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
)

func TestIDsGrowAndTellTheirTime(t *testing.T) {
	t.Parallel()
	before := time.Now().Add(-time.Millisecond)
	last := sluice.NewID()
	for range 10_000 {
		next := sluice.NewID()
		if bytes.Compare(last[:], next[:]) >= 0 {
			t.Fatalf("%s is not larger than %s", next, last)
		}
		last = next
	}
	if at := last.Time(); at.Before(before) || at.After(time.Now().Add(time.Second)) {
		t.Errorf("made at %s, it says", at)
	}
	if version := last[6] >> 4; version != 7 {
		t.Errorf("version %d", version)
	}
	if variant := last[8] >> 6; variant != 2 {
		t.Errorf("variant %d", variant)
	}
}

func TestIDsOfManyGoroutinesDiffer(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	seen := map[sluice.ID]bool{}
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			for range 2000 {
				id := sluice.NewID()
				mu.Lock()
				if seen[id] {
					t.Errorf("%s was made twice", id)
				}
				seen[id] = true
				mu.Unlock()
			}
		})
	}
	wait.Wait()
}

func TestIDReadsBackAsItWasWritten(t *testing.T) {
	t.Parallel()
	id := sluice.NewID()
	text, err := json.Marshal(map[string]sluice.ID{"id": id})
	if err != nil {
		t.Fatal(err)
	}
	var back map[string]sluice.ID
	if err := json.Unmarshal(text, &back); err != nil || back["id"] != id {
		t.Errorf("%s read back as %v, %v", text, back, err)
	}
}

func TestWhatIsNoIDIsRefused(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "x", "01a1fb43-07ee-7420-aa66-ac93baad531", "01a1fb43-07ee-7420-aa66-ac93baad53170", "01a1fb43_07ee_7420_aa66_ac93baad5317", "01a1fb43-07ee-7420-aa66-ac93baad531g", "{01a1fb43-07ee-7420-aa66-ac93baad531}"} {
		if _, err := sluice.ParseID(text); !errors.Is(err, sluice.ErrInvalid) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func FuzzParseID(f *testing.F) {
	f.Add("01a1fb43-07ee-7420-aa66-ac93baad5317")
	f.Add("")
	f.Fuzz(func(t *testing.T, text string) {
		id, err := sluice.ParseID(text)
		if err != nil {
			return
		}
		if again, err := sluice.ParseID(id.String()); err != nil || again != id {
			t.Errorf("%q became %s, which became %s, %v", text, id, again, err)
		}
	})
}
