package postgres

import (
	"context"
	_ "embed"
	"errors"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-queue/sluice"
)

//go:embed sql/follow_triggers.sql
var followTriggersSQL string

// endFollower is the statements of [Store.Unfollow].
const endFollower = "drop function if exists sluice.follow_{name}_live(), sluice.follow_{name}_done() cascade; delete from sluice.follower where name = '{name}'"

// followers checks whether each follower's statement runs, and can run. Only the role that made a follower can try
// its statement, because other roles have other rights.
func (c *examination) followers(ctx context.Context) error {
	rows, err := rowsOf[followerRow](ctx, c.store.pool, followersSQL, "")
	if err != nil {
		return err
	}
	well := 0
	for _, row := range rows {
		failed := c.tryFollower(ctx, row)
		switch {
		case !row.runs():
			c.LostFollower(row.follower(), "a trigger or a function follow_"+row.Name)
		case errors.Is(failed, sluice.ErrInvalid):
			c.FailingFollower(row.follower(), failed, strings.ReplaceAll(endFollower, "{name}", row.Name))
		case failed != nil:
			return failed
		default:
			well++
		}
	}
	if well == len(rows) && well > 0 {
		c.Well("follower", "%d: each has its triggers, and its statement can be run", well)
	}
	return nil
}

// tryFollower has the server plan the statement with the trigger's search_path.
func (c *examination) tryFollower(ctx context.Context, row followerRow) error {
	if !row.Owned {
		return nil
	}
	return pgx.BeginFunc(ctx, c.store.pool, func(tx pgx.Tx) error {
		if err := exec(ctx, tx, "select set_config('search_path', $1::text, true)", row.Path); err != nil {
			return err
		}
		return tryStatement(ctx, tx, row.Statement)
	})
}
