package postgres

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestCleaningRunsOneVacuumAtATime(t *testing.T) {
	t.Parallel()
	var c cleaning
	begun, end := make(chan bool, 2), make(chan error)
	vacuum := func(context.Context) error {
		begun <- true
		return <-end
	}
	c.begin(t.Context(), vacuum)
	<-begun
	c.begin(t.Context(), vacuum)
	end <- errors.New("broken")
	c.all.Wait()
	if len(begun) > 0 {
		t.Error("a second vacuum began beside the first")
	}
	if err := c.hear(); err == nil || err.Error() != "broken" {
		t.Errorf("the vacuum failed with %v, want its error", err)
	}
	if err := c.hear(); err != nil {
		t.Errorf("the error is told again: %v", err)
	}
}

func TestCleaningRestsTwentyTimesAsLongAsAVacuumTook(t *testing.T) {
	t.Parallel()
	var c cleaning
	c.begin(t.Context(), func(context.Context) error { return nil })
	c.all.Wait()
	c.mu.Lock()
	_, c.stop = context.WithCancel(t.Context())
	c.mu.Unlock()
	c.end(time.Hour, nil)
	c.begin(t.Context(), func(context.Context) error {
		t.Error("a vacuum began within the rest")
		return nil
	})
	c.all.Wait()
	if rest := time.Until(c.rest); rest < 19*time.Hour {
		t.Errorf("the rest after an hour is %s, want 20 hours", rest)
	}
}

func TestCleaningEndsItsVacuumWhenTheStoreCloses(t *testing.T) {
	t.Parallel()
	var c cleaning
	caller, leave := context.WithCancel(t.Context())
	left := make(chan bool)
	c.begin(caller, func(ctx context.Context) error {
		if leave(); ctx.Err() != nil {
			t.Error("the vacuum ended with its caller, though the store is open")
		}
		close(left)
		<-ctx.Done()
		return ctx.Err()
	})
	<-left
	c.close()
	c.begin(t.Context(), func(context.Context) error {
		t.Error("a vacuum began in a closed store")
		return nil
	})
	c.all.Wait()
}
