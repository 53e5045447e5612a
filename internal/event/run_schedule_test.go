package event_test

import (
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/batch"
	"github.com/sluice-queue/sluice/schedule"
	"github.com/sluice-queue/sluice/upkeep"
)

// fireSchedules lets a schedule fire, and pause itself because its job dies. A full queue refuses another fire. A batch calls back.
func fireSchedules(t *testing.T, s *shop) {
	settings := sluice.DefaultSettings()
	settings.MaxWaiting = 1
	_, err := s.client.EnsureQueue(s.ctx, "full", settings, act)
	must(t, err)
	_, err = schedule.Set(s.ctx, s.store, "refused", schedule.Definition{Queue: "full", Every: 5 * time.Second, Overlap: schedule.QueueAll}, act)
	must(t, err)
	_, err = schedule.Set(s.ctx, s.store, "often", schedule.Definition{Queue: "reports", Every: 5 * time.Second, PauseAfter: 1}, act)
	must(t, err)
	empty, err := batch.Open(s.ctx, s.store, batch.Batch{Callbacks: batch.Callbacks{OnComplete: &batch.Callback{Queue: "calls"}}}, act)
	must(t, err)
	must(t, batch.Close(s.ctx, s.store, empty.ID, act))
	go func() { _ = upkeep.New(s.store, upkeep.Options{Logger: s.logger}).Run(s.ctx) }()
	s.after(10 * time.Second)
	token := sluice.NewToken()
	fired, err := s.store.Claim(s.ctx, sluice.ClaimRequest{Queue: "reports", Limit: 1, Holder: "h:1:x", Lease: time.Minute, Token: token})
	must(t, err)
	_, err = s.store.Settle(s.ctx, []sluice.Settlement{{ID: fired.Jobs[0].ID, Token: token, Holder: "h:1:x", Event: sluice.EventBury, Error: "no route"}})
	must(t, err)
	s.after(20 * time.Second)
}
