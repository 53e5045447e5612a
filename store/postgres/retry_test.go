package postgres

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
)

func TestACallThatEndsInTheMiddleOfATryTellsWhyTheOnesBeforeFailed(t *testing.T) {
	t.Parallel()
	refused := &net.OpError{Op: "dial", Err: errors.New("connection refused")}
	ctx, cancel := context.WithCancel(t.Context())
	s := &Store{options: Options{CallTimeout: time.Minute}}
	err := s.call(ctx, "look", func(_ context.Context, again bool) error {
		if !again {
			return refused
		}
		cancel()
		return context.Canceled
	})
	for _, want := range []error{sluice.ErrUnavailable, context.Canceled, refused} {
		if !errors.Is(err, want) {
			t.Errorf("the error %q is not %q", err, want)
		}
	}
}
