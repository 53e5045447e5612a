package httpapi_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/access"
	"github.com/sluice-queue/sluice/cmd/httpapi"
	"github.com/sluice-queue/sluice/hold"
	"github.com/sluice-queue/sluice/store/memory"
	"github.com/sluice-queue/sluice/store/remote"
)

// TestManyHoldsAreListedOverHTTP asks for more holds than a request may ask for, and for more than one answer holds.
func TestManyHoldsAreListedOverHTTP(t *testing.T) {
	t.Parallel()
	behind, ctx := memory.New(memory.Options{}), t.Context()
	var jobs []sluice.NewJob
	for i := range 2500 {
		options := sluice.EnqueueOptions{Hold: "a look", Tenant: []string{"acme", "globex"}[i%2]}
		jobs = append(jobs, sluice.NewJob{Queue: []string{"mail", "sms"}[i%5/4], Payload: []byte(`1`), EnqueueOptions: options})
	}
	var newest, mine []sluice.ID
	for i, receipt := range must(sluice.NewClient(behind, sluice.ClientOptions{}).EnqueueMany(ctx, jobs)) {
		newest = append(newest, receipt.ID)
		if jobs[i].Tenant == "acme" && jobs[i].Queue == "mail" {
			mine = append(mine, receipt.ID)
		}
	}
	for _, ids := range [][]sluice.ID{newest, mine} {
		slices.SortFunc(ids, func(a, b sluice.ID) int { return bytes.Compare(b[:], a[:]) })
	}
	for name, c := range map[string]struct {
		bounds access.Bounds
		all    []sluice.ID
	}{
		"all":     {access.Bounds{}, newest},
		"bounded": {access.Bounds{Queues: []string{"ma*"}, Tenants: []string{"acme"}}, mine},
	} {
		server := serveStore(t, behind, httpapi.Options{}, access.Caller{Name: name, Role: access.RoleViewer, Bounds: c.bounds})
		store := must(remote.Open(ctx, server.url, remote.Options{Token: name}))
		named := slices.Clone(newest[100:2400])
		slices.Reverse(named)
		namedMine := slices.DeleteFunc(slices.Clone(c.all), func(id sluice.ID) bool { return !slices.Contains(named, id) })
		for of, l := range map[string]struct {
			filter hold.Filter
			want   []sluice.ID
		}{
			"every":         {hold.Filter{Limit: 10_000}, c.all},
			"most":          {hold.Filter{Limit: 950}, c.all[:950]},
			"after another": {hold.Filter{Limit: 10_000, Before: c.all[300]}, c.all[301:]},
			"named":         {hold.Filter{Limit: 10_000, Jobs: named}, namedMine},
			"most of named": {hold.Filter{Limit: 150, Jobs: named}, namedMine[:150]},
			"none named":    {hold.Filter{Limit: 10, Jobs: []sluice.ID{}}, nil},
		} {
			var got []sluice.ID
			for _, held := range must(hold.List(ctx, store, l.filter)) {
				if got = append(got, held.JobID); held.Reason != "a look" {
					t.Errorf("the hold is %+v, want the reason a look", held)
				}
			}
			if !slices.Equal(got, l.want) {
				t.Errorf("%s, %s: %d holds, want %d", name, of, len(got), len(l.want))
			}
		}
		_ = store.Close()
	}
}
