package history_test

import (
	"errors"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/history"
)

func TestMarkOfAPlaceIsReadAgain(t *testing.T) {
	t.Parallel()
	for _, place := range []history.Place{
		{},
		{Queue: "q", Outcome: sluice.StateDead},
		{Queue: "mail.send:eu-1", Outcome: sluice.StateCompleted, EndedAt: time.UnixMicro(1_700_000_000_123_456).UTC()},
	} {
		mark := place.String()
		if mark == "" {
			t.Errorf("%+v has an empty mark, which is that of the front", place)
		}
		if got, err := history.Parse(mark); err != nil || got != place {
			t.Errorf("mark %q is read as %+v, %v; want %+v", mark, got, err, place)
		}
	}
	if got, err := history.Parse(""); err != nil || got != (history.Place{}) {
		t.Errorf("an empty mark is read as %+v, %v", got, err)
	}
	for _, mark := range []string{"x", "a/b", "a/b/c", "a/b/1/2"} {
		if _, err := history.Parse(mark); !errors.Is(err, sluice.ErrInvalid) {
			t.Errorf("mark %q: %v, want ErrInvalid", mark, err)
		}
	}
}
