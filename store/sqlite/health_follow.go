package sqlite

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/sluice-queue/sluice"
)

// followers checks whether each follower's statement runs, and can run.
func (c *examination) followers(ctx context.Context) error {
	return c.store.look(ctx, func(tx runner) error {
		all, err := list(tx, scanFollower, followersSQL, "")
		if err != nil {
			return err
		}
		well := 0
		for _, f := range all {
			lost, err := lostTriggers(tx, f)
			if err != nil {
				return err
			}
			failed := tryStatement(tx, f.Statement)
			switch {
			case len(lost) > 0:
				c.LostFollower(f, lost[0].name)
			case errors.Is(failed, sluice.ErrInvalid):
				c.FailingFollower(f, failed, c.shell(endFollower(f)))
			case failed != nil:
				return failed
			default:
				well++
			}
		}
		if well == len(all) && well > 0 {
			c.Well("follower", "%d: each has its triggers, and its statement can be run", well)
		}
		return nil
	})
}

// endFollower returns the statements of [Store.Unfollow] for the sqlite3 shell.
func endFollower(f sluice.Follower) string {
	var text strings.Builder
	for _, t := range triggersOf(f) {
		text.WriteString("drop trigger if exists " + t.name + "; ")
	}
	return text.String() + "delete from sluice_follower where name = '" + f.Name + "'"
}

// withoutFollowerTriggers removes the triggers of followers from a list of objects.
func withoutFollowerTriggers(tx runner, there []object) ([]object, error) {
	all, err := list(tx, scanFollower, followersSQL, "")
	if err != nil {
		return nil, err
	}
	expected := make(map[string]bool)
	for _, f := range all {
		for _, t := range triggersOf(f) {
			expected[t.name] = true
		}
	}
	return slices.DeleteFunc(there, func(o object) bool { return o.kind == "trigger" && expected[o.name] }), nil
}
