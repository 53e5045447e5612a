package limit_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/limit"
	"github.com/sluice-queue/sluice/store/memory"
)

var ada = sluice.Act{By: "ada", Reason: "test"}

// keep changes nothing.
func keep(*limit.Limit) error { return nil }

func TestFiguresAreReadAsPeopleWriteThem(t *testing.T) {
	t.Parallel()
	var l limit.Limit
	for _, figure := range [][2]string{{"rate", "500/5s"}, {"burst", "100"}, {"concurrency", "20"}, {"per", "key"}, {"units", "cost"}} {
		if err := l.Set(figure[0], figure[1]); err != nil {
			t.Error(err)
		}
	}
	if got := l.String(); got != "rate=500/5s burst=100 concurrency=20 per=key units=cost" {
		t.Errorf("the figures are %q", got)
	}
	for _, name := range []string{"rate", "burst", "concurrency", "per", "units"} {
		if err := l.Set(name, ""); err != nil {
			t.Error(err)
		}
	}
	if got := l.String(); got != "no figures" {
		t.Errorf("after empty texts the figures are %q", got)
	}
	for _, wrong := range [][2]string{{"rate", "fast"}, {"burst", "1.5"}, {"concurrency", "many"}, {"per", "host"}, {"units", "tokens"}} {
		if err := l.Set(wrong[0], wrong[1]); !errors.Is(err, sluice.ErrInvalid) {
			t.Errorf("%s=%s: %v, want an ErrInvalid", wrong[0], wrong[1], err)
		}
	}
	if err := l.Set("weight", "3"); !errors.Is(err, sluice.ErrNotFound) {
		t.Errorf("an unknown figure is %v, want an ErrNotFound", err)
	}
}

func TestFiguresOutOfRangeAreRefused(t *testing.T) {
	t.Parallel()
	store := memory.New(memory.Options{})
	for name, change := range map[string]func(*limit.Limit){
		"a negative concurrency": func(l *limit.Limit) { l.Concurrency = -1 },
		"a large concurrency":    func(l *limit.Limit) { l.Concurrency = limit.MaxFigure + 1 },
		"a negative burst":       func(l *limit.Limit) { l.Burst = -1 },
		"a large rate":           func(l *limit.Limit) { l.Rate = sluice.RatePerSecond(2 * limit.MaxFigure) },
		"an end before time":     func(l *limit.Limit) { l.ClosedUntil = time.Unix(-1e10, 0) },
	} {
		if _, err := limit.Change(t.Context(), store, "bank", ada, func(l *limit.Limit) error { change(l); return nil }); !errors.Is(err, sluice.ErrInvalid) {
			t.Errorf("%s: %v, want an ErrInvalid", name, err)
		}
	}
	if _, err := limit.Change(t.Context(), store, "the bank", ada, keep); !errors.Is(err, sluice.ErrInvalid) {
		t.Errorf("a name with a blank: %v, want an ErrInvalid", err)
	}
	if _, err := limit.Close(t.Context(), store, "bank", -time.Second, ada); !errors.Is(err, sluice.ErrInvalid) {
		t.Errorf("a negative while: %v, want an ErrInvalid", err)
	}
}

func TestCloseNeverShortensAClose(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(memory.Options{})
		if _, err := limit.Close(t.Context(), store, "bank", time.Hour, ada); !errors.Is(err, sluice.ErrNotFound) {
			t.Errorf("a close of an unknown limit: %v, want an ErrNotFound", err)
		}
		if _, err := limit.Change(t.Context(), store, "bank", ada, keep); err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			while, want time.Duration
			version     int64
		}{{time.Hour, time.Hour, 2}, {time.Minute, time.Hour, 2}, {time.Hour + time.Millisecond, time.Hour, 2}, {2 * time.Hour, 2 * time.Hour, 3}, {0, 0, 4}, {time.Hour, 0, 4}} {
			closed, err := limit.Close(t.Context(), store, "bank", c.while, ada)
			if err != nil || closed.Version != c.version || !closed.ClosedAt(time.Now()) {
				t.Errorf("closed for %s: version %d, want %d: %v", c.while, closed.Version, c.version, err)
			}
			if until := closed.ClosedUntil; c.want != 0 && time.Until(until) != c.want || c.want == 0 && !until.IsZero() {
				t.Errorf("closed for %s: until %s, want in %s", c.while, until, c.want)
			}
		}
		if opened, err := limit.Open(t.Context(), store, "bank", ada); err != nil || opened.ClosedAt(time.Now()) {
			t.Errorf("opened: %+v %v", opened, err)
		}
	})
}

// limitPort embeds under another name than that of the store.
type limitPort = limit.Store

// crowded is a store in which somebody acts right after a limit was read for the first time.
type crowded struct {
	sluice.Store
	limitPort
	act func()
}

func (c *crowded) Limits(ctx context.Context, names []string) ([]limit.Limit, error) {
	found, err := c.limitPort.Limits(ctx, names)
	if act := c.act; act != nil {
		c.act = nil
		act()
	}
	return found, err
}

func TestCloseNeverShortensACloseOfTheSameMoment(t *testing.T) {
	t.Parallel()
	store := memory.New(memory.Options{})
	if _, err := limit.Change(t.Context(), store, "bank", ada, keep); err != nil {
		t.Fatal(err)
	}
	beside := &crowded{store, limit.Given(store), func() {
		if _, err := limit.Close(t.Context(), store, "bank", 0, ada); err != nil {
			t.Error(err)
		}
	}}
	closed, err := limit.Close(t.Context(), beside, "bank", time.Minute, ada)
	if err != nil || !closed.Closed || !closed.ClosedUntil.IsZero() {
		t.Errorf("a close for a minute answers %+v, want the one without an end: %v", closed, err)
	}
	if stored, err := limit.Read(t.Context(), store, "bank"); err != nil || !stored.Closed || !stored.ClosedUntil.IsZero() {
		t.Errorf("the limit is %+v, want closed without an end: %v", stored, err)
	}
}

func TestNamesOfASettingAreSortedAndOnce(t *testing.T) {
	t.Parallel()
	if got := limit.Names("ledger,bank,ledger"); len(got) != 2 || got[0] != "bank" || got[1] != "ledger" {
		t.Errorf("the names are %q", got)
	}
	if got := limit.Names(""); len(got) != 0 {
		t.Errorf("an empty setting has the names %q", got)
	}
}
