package wave

import (
	"strconv"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/forecast"
)

func TestTheLargestTenantsComeToTheTopHoweverManyThereAre(t *testing.T) {
	t.Parallel()
	c := NewCounter(NewFrame(time.Now()))
	c.most = 1000
	for n := range 50_000 {
		c.Rank(Tenant{"q", "small " + strconv.Itoa(n)}, 1)
		if n%10 == 0 {
			c.Rank(Tenant{"q", "large " + strconv.Itoa(n/10%30)}, 2)
		}
		if len(c.ranks) > c.most {
			t.Fatalf("%d tenants are ranked", len(c.ranks))
		}
	}
	c.Rank(Tenant{"other", "only"}, 1)
	largest := c.Largest()
	if len(largest) != forecast.MaxTenants+1 || largest[0] != (Tenant{"other", "only"}) {
		t.Fatalf("the %d largest are %v, want %d with the only tenant of `other` first", len(largest), largest, forecast.MaxTenants+1)
	}
	for _, of := range largest[1:] {
		if of.Name[:5] != "large" {
			t.Errorf("%v is among the largest", of)
		}
	}
}

func TestOnlyWhatDiffersIsWritten(t *testing.T) {
	t.Parallel()
	at := time.Unix(0, 0).UTC()
	same, changed, old := Row{"minute", at, 5, "{}"}, Row{"minute", at.Add(time.Minute), 5, "{}"}, Row{"minute", at.Add(time.Hour), 1, "{}"}
	more, fresh := changed, Row{"hour", at, 1, "{}"}
	more.Tenants = `{"acme":1}`
	gone, put := Differences([]Row{same, changed, old}, []Row{same, more, fresh})
	if len(gone) != 1 || gone[0] != old || len(put) != 2 || put[0] != more || put[1] != fresh {
		t.Errorf("gone %v, put %v", gone, put)
	}
}

func TestJobsThatComeInBetweenAreNotMissing(t *testing.T) {
	t.Parallel()
	c := NewCounter(NewFrame(time.Now()))
	c.Add("q", Due, 1)
	c.AddTenant(Tenant{"q", "acme"}, Due, 2)
	if rows := c.Rows("q"); len(rows) != 1 || rows[0].Jobs != 2 {
		t.Errorf("the rows are %v, want one with 2 jobs", rows)
	}
}

func TestRowsAreBounded(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 12, 1, 16, 0, 0, 1, time.UTC)
	frame := NewFrame(now)
	if want := time.Date(2026, 12, 2, 17, 0, 0, 0, time.UTC); !frame.Minutes.Equal(want) {
		t.Errorf("minutes until %s, want %s", frame.Minutes, want)
	}
	c := NewCounter(frame)
	for minute := range 20 * 24 * 60 {
		p, counted := frame.PlaceOf(sluice.StateQueued, false, now.Add(time.Duration(minute)*time.Minute))
		if !counted {
			t.Fatal("a queued job is not counted")
		}
		c.Add("q", p, 1)
	}
	if rows := len(c.Rows("q")); rows > 1700 {
		t.Errorf("%d rows", rows)
	}
}
