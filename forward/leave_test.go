package forward_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/forward"
	"github.com/sluice-queue/sluice/presence"
)

// processes has a name of its own, because two embedded ports are named Store.
type processes = presence.Store

// slowHeart is a store that writes a heartbeat only after the holder has deregistered, unless the holder cancels the
// heartbeat.
type slowHeart struct {
	*line
	processes
	beating, left chan struct{}
}

func (s *slowHeart) Heartbeat(ctx context.Context, holder presence.Holder) (presence.Instruction, error) {
	close(s.beating)
	select {
	case <-ctx.Done():
		return presence.Instruction{}, ctx.Err()
	case <-s.left:
		return s.processes.Heartbeat(ctx, holder)
	}
}

func (s *slowHeart) Deregister(ctx context.Context, holderID string) error {
	err := s.processes.Deregister(ctx, holderID)
	close(s.left)
	time.Sleep(time.Second) // meanwhile the late heartbeat would be written
	return err
}

func (s *slowHeart) Settle(ctx context.Context, settlements []sluice.Settlement) ([]error, error) {
	<-s.beating
	return s.line.Settle(ctx, settlements)
}

func TestForwarderThatHasEndedIsNotListed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSea(t)
		s.add(sluice.EnqueueOptions{})
		local := &slowHeart{line: s.local, processes: presence.Given(s.local), beating: make(chan struct{}), left: make(chan struct{})}
		if sent, err := forward.New(local, s.centre, s.forwardToCentre).Once(t.Context()); err != nil || sent.Forwarded != 1 {
			t.Fatalf("sent %+v, %v", sent, err)
		}
		status, err := forward.StatusOf(t.Context(), s.local, []string{queue})
		if err != nil || len(status) != 1 || len(status[0].Forwarders) != 0 {
			t.Errorf("status %+v, %v; want no forwarder", status, err)
		}
	})
}
