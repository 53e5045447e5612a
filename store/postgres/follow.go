package postgres

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/follow"
)

//go:embed sql/followers.sql
var followersSQL string

// movedLive and movedDone hold the SQL expressions for a move's columns, in a trigger on the table of the new
// state.
var (
	movedLive = movedIn("new.state", "(extract(epoch from pg_catalog.now()) * 1000000)::bigint")
	movedDone = movedIn("new.outcome", "(extract(epoch from new.finished_at) * 1000000)::bigint")
)

func movedIn(state, at string) follow.Expressions {
	return follow.Expressions{
		"id": "(new.id::text)", "key": "coalesce((select job.key from sluice.job where job.id = new.id), '')", "queue": "new.queue", "tenant": "new.tenant",
		"generation": "new.generation", "state": state, "attempts": "new.attempts", "error": "coalesce(new.error, '')",
		"ref": "coalesce(new.ref, '')", "at": "(" + at + ")",
	}
}

// Follow registers a follower: the server runs its statement with each move of the queue's jobs, in the move's
// transaction. Follow takes effect when it returns, and replaces a follower of the same name. Call it at each start
// of the program; a follower that is already registered is left alone, and nothing is locked. The first time, and
// when Follower.Queue or States change, Follow briefly locks sluice.live and sluice.done.
//
// The role must own Sluice's tables. The statement runs with the rights and the search_path of this role, whichever
// role makes the move. If this database cannot run the statement, Follow returns a [sluice.ErrInvalid]. If the
// statement fails later, the move fails with a [sluice.ErrFollower].
func (s *Store) Follow(ctx context.Context, f sluice.Follower) error {
	if err := follow.Check(f, func(string) bool { return false }); err != nil {
		return fmt.Errorf("follow: %w", err)
	}
	return s.call(ctx, "follow", func(ctx context.Context, _ bool) error {
		if there, err := s.follows(ctx, s.pool, f); err != nil || there {
			return err
		}
		conn, err := s.pool.Acquire(ctx)
		if err != nil {
			return err
		}
		defer conn.Release()
		return mayOwn(underMigrationLock(ctx, conn.Conn(), func(tx pgx.Tx) error {
			if there, err := s.follows(ctx, tx, f); err != nil || there {
				return err // another process has just registered it
			}
			return makeFollower(ctx, tx, f)
		}))
	})
}

// Unfollow removes a follower. A follower that does not exist is no error.
func (s *Store) Unfollow(ctx context.Context, name string) error {
	if err := follow.CheckName(name); err != nil {
		return fmt.Errorf("unfollow: %w", err)
	}
	return s.call(ctx, "unfollow", func(ctx context.Context, _ bool) error {
		conn, err := s.pool.Acquire(ctx)
		if err != nil {
			return err
		}
		defer conn.Release()
		return mayOwn(underMigrationLock(ctx, conn.Conn(), func(tx pgx.Tx) error { return dropFollower(ctx, tx, name) }))
	})
}

// Followers lists the followers by name.
func (s *Store) Followers(ctx context.Context) (out []sluice.Follower, err error) {
	err = s.call(ctx, "read followers", func(ctx context.Context, _ bool) error {
		rows, err := rowsOf[followerRow](ctx, s.pool, followersSQL, "")
		out = nil
		for _, row := range rows {
			out = append(out, row.follower())
		}
		return err
	})
	return out, err
}

// followerRow is a row of followers.sql.
type followerRow struct {
	Name, Queue, States, Statement string
	Whole                          bool
	LiveBody, DoneBody             string
	Owned                          bool
	Path                           string
}

func (r followerRow) follower() sluice.Follower {
	return sluice.Follower{Name: r.Name, Queue: r.Queue, States: follow.StatesOf(r.States), Statement: r.Statement}
}

// runs reports whether triggers run the statement as it is stored.
func (r followerRow) runs() bool {
	return r.Whole && r.LiveBody == followBody(r.Statement, movedLive) && r.DoneBody == followBody(r.Statement, movedDone)
}

func (s *Store) follows(ctx context.Context, db rowsQuerier, f sluice.Follower) (bool, error) {
	rows, err := rowsOf[followerRow](ctx, db, followersSQL, f.Name)
	return err == nil && len(rows) == 1 && rows[0].runs() && follow.Same(rows[0].follower(), f), err
}

// followBody is the body of the function that runs a statement. A name in the statement is first the name of a
// column, so no variable of the function can replace it.
func followBody(statement string, moved follow.Expressions) string {
	return "\n#variable_conflict use_column\nbegin\n" + follow.Expand(statement, moved) + ";\nreturn null;\nend\n"
}

// followTriggers creates the triggers of a follower. No trigger fires for an enqueue: an insert into sluice.live
// counts as a move only if its generation is above 1. {name} is the follower's name; {when live} and {when done}
// are the conditions on moves.
const followTriggers = `
create trigger follow_{name}_moved after update of state on sluice.live
    for each row when (old.state is distinct from new.state and {when live}) execute function sluice.follow_{name}_live();
create trigger follow_{name}_requeued after insert on sluice.live
    for each row when (new.generation > 1 and {when live}) execute function sluice.follow_{name}_live();
create trigger follow_{name}_ended after insert on sluice.done
    for each row when ({when done}) execute function sluice.follow_{name}_done();`

// makeFollower stores a follower and creates its functions and triggers.
func makeFollower(ctx context.Context, tx pgx.Tx, f sluice.Follower) error {
	if err := tryStatement(ctx, tx, f.Statement); err != nil {
		return err
	}
	if err := makeFollowFunctions(ctx, tx, f); err != nil {
		return err
	}
	rows, err := rowsOf[followerRow](ctx, tx, followersSQL, f.Name)
	if err != nil {
		return err
	}
	if len(rows) == 0 || !rows[0].Whole || rows[0].Queue != f.Queue || rows[0].States != follow.StatesText(f) {
		if err := dropFollowTriggers(ctx, tx, f.Name); err != nil {
			return err
		}
		text := strings.NewReplacer("{name}", f.Name, "{when live}", follow.When(f, "new.queue", "new.state"),
			"{when done}", follow.When(f, "new.queue", "new.outcome")).Replace(followTriggers)
		if _, err := tx.Exec(ctx, text); err != nil {
			return err
		}
	}
	return exec(ctx, tx, `insert into sluice.follower (name, queue, states, statement) values ($1::text, $2::text, $3::text, $4::text)
		on conflict (name) do update set queue = excluded.queue, states = excluded.states, statement = excluded.statement, made_at = now()`,
		f.Name, f.Queue, follow.StatesText(f), f.Statement)
}

// tryStatement checks a statement by having the server plan it, which runs nothing.
func tryStatement(ctx context.Context, tx pgx.Tx, statement string) error {
	return pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, "explain "+follow.Expand(statement, follow.Sample()))
		var server *pgconn.PgError
		if errors.As(err, &server) && !transient(err) && server.Code != "57014" {
			return follow.Refused(err)
		}
		return err
	})
}

// makeFollowFunctions creates the functions of the triggers. They find the same tables as this session, and no
// temporary table of the session that makes a move.
func makeFollowFunctions(ctx context.Context, tx pgx.Tx, f sluice.Follower) error {
	err := exec(ctx, tx, "select set_config('search_path', concat_ws(', ', nullif(current_setting('search_path'), ''), 'pg_temp'), true)")
	if err != nil {
		return err
	}
	for table, moved := range map[string]follow.Expressions{"live": movedLive, "done": movedDone} {
		function := "sluice.follow_" + f.Name + "_" + table + "()"
		text := "create or replace function " + function + " returns trigger language plpgsql security definer set search_path from current as " +
			literal(followBody(f.Statement, moved)) + "; revoke execute on function " + function + " from public"
		if _, err := tx.Exec(ctx, text); err != nil {
			return err
		}
	}
	return nil
}

func dropFollowTriggers(ctx context.Context, tx pgx.Tx, name string) error {
	_, err := tx.Exec(ctx, strings.ReplaceAll(`
		drop trigger if exists follow_{name}_moved on sluice.live;
		drop trigger if exists follow_{name}_requeued on sluice.live;
		drop trigger if exists follow_{name}_ended on sluice.done`, "{name}", name))
	return err
}

func dropFollower(ctx context.Context, tx pgx.Tx, name string) error {
	rows, err := rowsOf[followerRow](ctx, tx, followersSQL, name)
	if err != nil || len(rows) == 0 {
		return err
	}
	if err := dropFollowTriggers(ctx, tx, name); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, strings.ReplaceAll("drop function if exists sluice.follow_{name}_live(), sluice.follow_{name}_done()", "{name}", name)); err != nil {
		return err
	}
	return exec(ctx, tx, "delete from sluice.follower where name = $1::text", name)
}

// mayOwn adds advice to the error for a role that must not create triggers on Sluice's tables.
func mayOwn(err error) error {
	if isCode(err, "42501") {
		return fmt.Errorf("this role does not own Sluice's tables; follow as their owner, once for each change of a follower: %w", err)
	}
	return err
}

// followedBy finds a follower's function in the context of an error.
var followedBy = regexp.MustCompile(`function (?:sluice\.)?follow_([a-z0-9_]+)_(?:live|done)\(\)`)

// ofFollower returns the error of a follower's statement as a [sluice.FollowerError]. Nil: no follower caused it.
func ofFollower(server *pgconn.PgError, err error) error {
	found := followedBy.FindStringSubmatch(server.Where)
	if found == nil {
		return nil
	}
	return &sluice.FollowerError{Followers: []string{found[1]}, Err: err}
}
