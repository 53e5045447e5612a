package changes_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/changes"
	"github.com/sluice-queue/sluice/store/memory"
)

// TestAheadIsWhatUpkeepWillDo follows overlapping changes of two days, and compares each version with what Apply stores then.
func TestAheadIsWhatUpkeepWillDo(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 12, 1, 15, 0, 0, 0, time.UTC)
	store := memory.New(memory.Options{Now: func() time.Time { return now }})
	client := sluice.NewClient(store, sluice.ClientOptions{})
	act := sluice.Act{By: "test"}
	if _, err := client.EnsureQueue(t.Context(), "q", sluice.DefaultSettings(), act); err != nil {
		t.Fatal(err)
	}
	busy := changes.Window{From: "16:00", To: "18:00", Zone: "UTC"}
	if _, err := changes.Schedule(t.Context(), client, "q", busy, map[string]string{"rate": "10/s"}, act); err != nil {
		t.Fatal(err)
	}
	night := changes.Window{From: "17:00", To: "06:00", Zone: "UTC"}
	if _, err := changes.Schedule(t.Context(), client, "q", night, map[string]string{"rate": "2/s", "paused": "true"}, act); err != nil {
		t.Fatal(err)
	}
	queue, err := changes.For(t.Context(), client, "q", 30*time.Minute, act, func(s *sluice.Settings) error {
		s.Concurrency = 7
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	text := string(queue.Scheduled)
	versions, err := changes.Ahead(queue, now.Add(24*time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	var said []string
	for _, v := range versions {
		said = append(said, fmt.Sprintf("%s rate=%s concurrency=%d paused=%t", v.Now.Format("15:04"), v.Settings.Rate, v.Settings.Concurrency, v.Settings.Paused))
		now = v.Now
		stored, err := client.Queue(t.Context(), "q")
		if err != nil {
			t.Fatal(err)
		}
		stored.Now = now
		if stored, _, err = changes.Apply(t.Context(), store, stored, "upkeep"); err != nil || stored.Settings != v.Settings {
			t.Errorf("at %s upkeep sets %+v, want %+v: %v", now, stored.Settings, v.Settings, err)
		}
	}
	want := "15:30 rate=0 concurrency=0 paused=false; 16:00 rate=10/s concurrency=0 paused=false; 17:00 rate=2/s concurrency=0 paused=true; 06:00 rate=0 concurrency=0 paused=false"
	if got := strings.Join(said, "; "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if string(queue.Scheduled) != text {
		t.Error("Ahead has changed its argument")
	}
	queue.Scheduled = []byte("nonsense")
	if _, err := changes.Ahead(queue, now); err == nil {
		t.Error("nonsense is no list of changes")
	}
}
