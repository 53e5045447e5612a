package flow_test

import (
	"testing"
	"time"

	"github.com/sluice-queue/sluice/internal/flow"
	"github.com/sluice-queue/sluice/limit"
)

func TestTheLeastRoomSaysWhenThereIsMore(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name       string
		a, b, want flow.Room
	}{
		{"the smaller one", flow.Room{Jobs: 3, Wait: time.Second}, flow.Room{Jobs: 5, Wait: time.Hour, Full: true}, flow.Room{Jobs: 3, Wait: time.Second}},
		{"equal ones wait for both", flow.Room{Wait: time.Second}, flow.Room{Wait: time.Minute}, flow.Room{Wait: time.Minute}},
		{"equal ones, of which one is full", flow.Room{Wait: time.Second}, flow.Room{Full: true}, flow.Room{Wait: time.Second, Full: true}},
	} {
		if got := c.a.Least(c.b); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
		if got := c.b.Least(c.a); got != c.want {
			t.Errorf("%s, the other way round: %+v, want %+v", c.name, got, c.want)
		}
	}
}

func TestAClosedLimitHasNoRoomUntilItOpens(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	room := func(l limit.Limit) flow.Room {
		return flow.NamedRoom(10, l, flow.Bucket{}, new(flow.Window), now, 3, 0)
	}
	if got := room(limit.Limit{Closed: true, ClosedUntil: now.Add(time.Minute)}); got != (flow.Room{Wait: time.Minute}) {
		t.Errorf("closed for a minute: %+v", got)
	}
	if got := room(limit.Limit{Closed: true}); got != (flow.Room{Full: true}) {
		t.Errorf("closed without an end: %+v", got)
	}
	if got := room(limit.Limit{Closed: true, ClosedUntil: now, Concurrency: 5}); got != (flow.Room{Jobs: 2, Full: true}) {
		t.Errorf("open again: %+v", got)
	}
}
