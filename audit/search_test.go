package audit_test

import (
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/store/memory"
)

// written makes a store with an entry for each second from begin on. Grace has written the first, and ada the others.
func written(t *testing.T, begin time.Time, entries int) *memory.Store {
	t.Helper()
	now := begin
	store := memory.New(memory.Options{Now: func() time.Time { return now }})
	one := []sluice.AuditEntry{{Object: audit.ObjectQueue, Name: "mail", Event: audit.EventBreaker, Actor: "grace"}}
	for range entries {
		if err := store.AppendAudit(t.Context(), one); err != nil {
			t.Fatal(err)
		}
		now = now.Add(time.Second)
		one[0].Actor = "ada"
	}
	return store
}

func TestASearchFindsTheEntriesOfATime(t *testing.T) {
	t.Parallel()
	begin := time.Date(2026, 12, 1, 16, 0, 0, 0, time.UTC)
	store := written(t, begin, 5000)
	at := func(second int) time.Time { return begin.Add(time.Duration(second) * time.Second) }
	for name, one := range map[string]struct {
		from, to    time.Time
		first, last int64 // numbers of entries; entry n is of the second n-1
	}{
		"all":              {time.Time{}, time.Time{}, 5000, 1},
		"from":             {at(4000), time.Time{}, 5000, 4001},
		"until":            {time.Time{}, at(1000), 1000, 1},
		"between":          {at(10), at(4990), 4990, 11},
		"between seconds":  {at(2000).Add(-1), at(2001).Add(1), 2002, 2001},
		"before the first": {time.Time{}, begin, 0, 0},
		"after the newest": {at(5000), time.Time{}, 0, 0},
		"from the newest":  {at(4999), time.Time{}, 5000, 5000},
		"a time of none":   {at(10).Add(time.Millisecond), at(11), 0, 0},
	} {
		var found []sluice.AuditEntry
		f := audit.Filter{From: one.from, To: one.to}
		for f.Limit = 700; ; {
			page, err := audit.Search(t.Context(), store, f)
			if err != nil {
				t.Fatal(err)
			}
			found = append(found, page.Entries...)
			if f.Before = page.Next; page.Next == 0 {
				break
			}
		}
		want := int(one.first - one.last + 1)
		if one.first == 0 {
			want = 0
		}
		if len(found) != want || want > 0 && (found[0].Seq != one.first || found[want-1].Seq != one.last) {
			t.Errorf("%s: found %d entries, want %d from %d to %d", name, len(found), want, one.first, one.last)
		}
	}
}

func TestASearchStopsAtItsBoundAndGoesOn(t *testing.T) {
	t.Parallel()
	store := written(t, time.Date(2026, 12, 1, 16, 0, 0, 0, time.UTC), 250_000)
	f := audit.Filter{AuditFilter: sluice.AuditFilter{Actor: "grace", Limit: 10}}
	pages := 0
	for {
		page, err := audit.SearchUntil(t.Context(), store, f, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		pages++
		if page.Next == 0 {
			if len(page.Entries) != 1 || page.Entries[0].Seq != 1 || pages != 3 {
				t.Errorf("page %d has %d entries, want the first entry on page 3", pages, len(page.Entries))
			}
			break
		}
		if len(page.Entries) != 0 || page.Next >= 250_000 || f.Before > 0 && page.Next >= f.Before {
			t.Fatalf("page %d has %d entries and goes on at %d", pages, len(page.Entries), page.Next)
		}
		f.Before = page.Next
	}
	f.Before = 0
	if page, err := audit.Search(t.Context(), store, f); err != nil || len(page.Entries) != 1 || page.Next != 0 {
		t.Errorf("with time enough: %d entries, next %d (%v), want 1 and the end", len(page.Entries), page.Next, err)
	}
	f.Limit = -1
	if _, err := audit.Search(t.Context(), store, f); err == nil {
		t.Error("a negative limit is taken")
	}
}
