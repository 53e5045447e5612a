package cli

import (
	"context"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/search"
)

// whereHelp describes the filter language.
const whereHelp = "filter, such as 'state:dead queue:mail.* attempts:>=3 error:~timeout'; see docs/guide/find.md"

// listWhere prints a page of the jobs that a filter chooses, and how to get the next.
func (a *app) listWhere(ctx context.Context, where, cursor string, f filterFlags) error {
	return a.withClient(ctx, func(ctx context.Context, store sluice.Store, _ *sluice.Client) error {
		now, err := store.Now(ctx)
		if err != nil {
			return err
		}
		q, err := search.Parse(where, now)
		if err != nil {
			return usageError{err}
		}
		if cursor == "" {
			if cursor, err = q.From(sluice.ID{}, f.oldestFirst); err != nil {
				return err
			}
		}
		found, err := search.ReadList(ctx, store, q, cursor, f.limit)
		if err != nil {
			return err
		}
		if len(found.Jobs) == 0 && found.Next == "" && a.output == "table" {
			a.note("no jobs")
			return nil
		}
		if err := printList(a, found.Jobs, func(j sluice.Job) string { return j.ID.String() }, jobColumns()); err != nil {
			return err
		}
		if found.Next != "" {
			a.note("more: --cursor %s", found.Next)
		}
		return nil
	})
}
