package storetest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/engine"
	"github.com/sluice-queue/sluice/health"
)

// Following is a store that has followers.
type Following interface {
	sluice.Store
	health.Store
	Follow(ctx context.Context, f sluice.Follower) error
	Unfollow(ctx context.Context, name string) error
	Followers(ctx context.Context) ([]sluice.Follower, error)
}

// FollowBench is a store with followers on data of its own.
type FollowBench struct {
	Bench
	Store, Other Following
	// DB is the same database, for tables of a user.
	DB *sql.DB
	// Birth makes a trigger that gives each new job a row in the table followed.
	Birth string
	// Jobs names the view of all jobs, TextID the text of its id there.
	Jobs, TextID string
	// Triggers lists the triggers of followers by name.
	Triggers string
	// LoseTrigger drops one of the follower rows.
	LoseTrigger string
	// Version numbers what is changed in the schema; it is the same as long as nothing is.
	Version string
}

const followTables = `
create table followed (id text primary key, state text not null, generation integer not null, attempts integer not null, error text not null, again integer not null);
create table told (id text, job_key text, queue text, tenant text, generation integer, state text, attempts integer, error text, ref text, at bigint)`

// followed keeps a row as its job is, and counts moves to the state that it has.
const followed = `update followed set again = again + case when state = moved.state then 1 else 0 end,
	state = moved.state, generation = moved.generation, attempts = moved.attempts, error = moved.error
where id = moved.id`

const toldOf = `insert into told (id, job_key, queue, tenant, generation, state, attempts, error, ref, at)
values (moved.id, moved.key, moved.queue, moved.tenant, moved.generation, moved.state, moved.attempts, moved.error, moved.ref, moved.at)`

// Follow checks that rows of a user follow their jobs.
func Follow(t *testing.T, open func(t *testing.T) FollowBench) {
	for name, check := range map[string]func(f *followWorld){
		"model":              func(f *followWorld) { Model(f.T, func(*testing.T) Bench { return f.followed() }) },
		"the move's columns": (*followWorld).columns, "rollback": (*followWorld).failure, "one of a batch": (*followWorld).apart, "same again": (*followWorld).again,
		"refusals": (*followWorld).refusals, "doctor": (*followWorld).doctor, "states": (*followWorld).states,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := open(t)
			f := &followWorld{world: &world{T: t, Bench: b.Bench, ctx: t.Context()}, b: b}
			f.sql(followTables)
			check(f)
		})
	}
}

type followWorld struct {
	*world
	b FollowBench
}

func (f *followWorld) sql(text string) {
	f.Helper()
	if _, err := f.b.DB.ExecContext(f.ctx, text); err != nil {
		f.Fatalf("%s: %v", text, err)
	}
}

// texts reads rows of one column.
func (f *followWorld) texts(query string) []string {
	f.Helper()
	rows, err := f.b.DB.QueryContext(f.ctx, query)
	if err != nil {
		f.Fatalf("%s: %v", query, err)
	}
	defer func() { _ = rows.Close() }()
	var out []string
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			f.Fatal(err)
		}
		out = append(out, text)
	}
	if err := rows.Err(); err != nil {
		f.Fatal(err)
	}
	return out
}

func (f *followWorld) follow(follower sluice.Follower) {
	f.Helper()
	if err := f.b.Store.Follow(f.ctx, follower); err != nil {
		f.Fatalf("follow: %v", err)
	}
}

// followed is a bench whose jobs are followed.
func (f *followWorld) followed() Bench {
	f.sql(f.b.Birth)
	b := f.b.Bench
	var present string
	b.Follow = func(queue string) {
		present = queue
		f.follow(sluice.Follower{Name: "rows", Queue: queue, Statement: followed})
	}
	b.Astray = func() []string {
		return f.texts(strings.NewReplacer("{jobs}", f.b.Jobs, "{id}", f.b.TextID, "{queue}", present).Replace(`
			select r.id || ' is ' || r.state || ' ' || r.generation || ' ' || r.attempts || ' ' || r.error || ' (again ' || r.again || '), its job ' ||
				j.state || ' ' || j.generation || ' ' || j.attempts || ' ' || coalesce(j.error, '')
			from followed r join {jobs} j on {id} = r.id
			where j.queue = '{queue}' and (r.state <> j.state or r.generation <> j.generation or r.attempts <> j.attempts or r.error <> coalesce(j.error, '') or r.again > 0)`))
	}
	return b
}

// columns compares each column of a move with what is known of it. The text is the same for both stores.
func (f *followWorld) columns() {
	f.follow(sluice.Follower{Name: "told", Queue: queue, Statement: toldOf})
	id := f.add(sluice.EnqueueOptions{Key: "order-1", Tenant: "acme"})
	f.done(by(sluice.EventRetry, f.claimOne()))
	f.Advance(2 * minute)
	claim := f.claimOne()
	f.intend(claim, "run-1")
	dispatch := by(sluice.EventDispatch, claim)
	dispatch.Ref = "run-1"
	f.done(dispatch)
	f.done(by(sluice.EventBury, claim))
	for _, act := range []func(context.Context, []sluice.ID, sluice.Act) ([]error, error){f.Store.Requeue, f.Store.Cancel} {
		if errs, err := act(f.ctx, []sluice.ID{id}, person("try")); err != nil || errs[0] != nil {
			f.Fatal(err, errs)
		}
	}
	got := f.texts(`select id || '|' || job_key || '|' || queue || '|' || tenant || '|' || generation || '|' || state || '|' || attempts || '|' || error || '|' || ref
		from told order by generation, attempts, case state when 'queued' then 1 when 'claimed' then 2 when 'dispatched' then 3 else 4 end`)
	of := func(rest string) string { return id.String() + "|order-1|payments|acme|" + rest }
	want := []string{
		of("1|claimed|0||"), of("1|queued|1|no route to bank|"), of("1|claimed|1|no route to bank|"), of("1|dispatched|1|no route to bank|run-1"),
		of("1|dead|2|no route to bank|run-1"), of("2|queued|0||"), of("2|cancelled|0||"),
	}
	if !slices.Equal(got, want) {
		f.Errorf("told of\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	now := f.Now().UnixMicro()
	if odd := f.texts(fmt.Sprintf("select state || ' at ' || at from told where at not between %d and %d", now-10*minute.Microseconds(), now+minute.Microseconds())); len(odd) > 0 {
		f.Errorf("moves at odd times: %s; now is %d", odd, now)
	}
}

func (f *followWorld) intend(claim *sluice.Claim, ref string) {
	f.Helper()
	errs, err := engine.Given(f.Store).RecordIntent(f.ctx, []engine.Intent{{ID: claim.ID, Token: claim.Token, Engine: "temporal", Ref: ref, Lease: minute}})
	if err != nil || errs[0] != nil {
		f.Fatalf("intend: %v, %v", err, errs)
	}
}

// failure looks that a move fails with its follower's statement, says whose it was, and succeeds when that is mended.
func (f *followWorld) failure() {
	f.follow(sluice.Follower{Name: "told", Queue: queue, Statement: toldOf})
	id := f.add(sluice.EnqueueOptions{})
	claim := f.claimOne()
	f.sql("create table elsewhere as select * from told")
	f.sql("drop table told")
	_, err := f.Store.Settle(f.ctx, []sluice.Settlement{by(sluice.EventComplete, claim)})
	var failed *sluice.FollowerError
	if !errors.As(err, &failed) || !slices.Equal(failed.Followers, []string{"told"}) || errors.Is(err, sluice.ErrNotMigrated) {
		f.Fatalf("settle: %v, want a FollowerError of told", err)
	}
	f.inState(id, sluice.StateClaimed)
	f.sql("create table told as select * from elsewhere")
	f.done(by(sluice.EventComplete, claim))
	if got := f.texts("select state from told order by at, state"); !slices.Equal(got, []string{"claimed", "completed"}) {
		f.Errorf("told of %s", got)
	}
}

// apart looks that a row which cannot be written holds up no job but its own.
func (f *followWorld) apart() {
	f.sql("create table ended (id text primary key)")
	f.follow(sluice.Follower{Name: "ended", Queue: queue, Statement: "insert into ended values (moved.id)", States: []sluice.State{sluice.StateCompleted}})
	ids := f.addMany(3)
	f.sql("insert into ended values ('" + ids[1].String() + "')")
	settled := make(map[sluice.ID]error)
	var batch []sluice.Settlement
	for _, c := range f.claim(3) {
		batch = append(batch, by(sluice.EventComplete, c))
	}
	errs, err := f.Store.Settle(f.ctx, batch)
	if err != nil {
		f.Fatal(err)
	}
	for i, s := range batch {
		settled[s.ID] = errs[i]
	}
	if settled[ids[0]] != nil || !errors.Is(settled[ids[1]], sluice.ErrFollower) || settled[ids[2]] != nil {
		f.Errorf("settled: %v", settled)
	}
	f.inState(ids[1], sluice.StateClaimed)
	f.inState(ids[2], sluice.StateCompleted)
}

// again looks that a follower that is there already is left alone, that another statement replaces it, and that it can end.
func (f *followWorld) again() {
	follower := sluice.Follower{Name: "told", Queue: queue, Statement: toldOf}
	var wait sync.WaitGroup
	for i := range 10 {
		store := f.b.Store
		if i%2 > 0 {
			store = f.b.Other
		}
		wait.Go(func() {
			if err := store.Follow(f.ctx, follower); err != nil {
				f.Errorf("follow: %v", err)
			}
		})
	}
	wait.Wait()
	version := f.texts(f.b.Version)
	f.follow(follower)
	equal(f.world, "version of the schema", fmt.Sprint(f.texts(f.b.Version)), fmt.Sprint(version))
	equal(f.world, "triggers", len(f.texts(f.b.Triggers)), 3)

	follower.Statement = "insert into told (state) values ('other')"
	follower.States = []sluice.State{sluice.StateClaimed}
	f.follow(follower)
	found, err := f.b.Other.Followers(f.ctx)
	if err != nil || len(found) != 1 || found[0].Statement != follower.Statement || !slices.Equal(found[0].States, follower.States) {
		f.Fatalf("followers are %+v, error %v", found, err)
	}
	f.add(sluice.EnqueueOptions{})
	claim := f.claimOne()
	if err := f.b.Other.Unfollow(f.ctx, "told"); err != nil {
		f.Fatal(err)
	}
	f.done(by(sluice.EventComplete, claim))
	equal(f.world, "told of", strings.Join(f.texts("select state from told"), " "), "other")
	equal(f.world, "triggers", len(f.texts(f.b.Triggers)), 0)
	if err := f.b.Store.Unfollow(f.ctx, "told"); err != nil {
		f.Errorf("unfollow again: %v", err)
	}
}

// refusals looks that a statement which cannot be run is refused, and leaves nothing behind.
func (f *followWorld) refusals() {
	for _, statement := range []string{
		"update nowhere set state = moved.state", "update told set nothing = moved.state", "update told set state = moved.nothing", "update told state = 1",
		"update told set state = 'a'; delete from told", "select 1", "delete from sluice_live", "delete from sluice.live",
	} {
		if err := f.b.Store.Follow(f.ctx, sluice.Follower{Name: "told", Queue: queue, Statement: statement}); !errors.Is(err, sluice.ErrInvalid) {
			f.Errorf("%s: error %v", statement, err)
		}
	}
	if found, err := f.b.Store.Followers(f.ctx); err != nil || len(found) > 0 || len(f.texts(f.b.Triggers)) > 0 {
		f.Errorf("followers %+v, triggers %s, error %v", found, f.texts(f.b.Triggers), err)
	}
}

// states looks that a follower is told of its states and its queue alone.
func (f *followWorld) states() {
	f.follow(sluice.Follower{Name: "told", Queue: queue, Statement: toldOf, States: []sluice.State{sluice.StateCompleted}})
	f.follow(sluice.Follower{Name: "other", Queue: "other", Statement: toldOf})
	f.add(sluice.EnqueueOptions{})
	f.done(by(sluice.EventComplete, f.claimOne()))
	equal(f.world, "told of", strings.Join(f.texts("select state from told"), " "), "completed")
}

// doctor looks that a lost trigger and a statement that cannot be run any more are found.
func (f *followWorld) doctor() {
	f.follow(sluice.Follower{Name: "rows", Queue: queue, Statement: followed})
	equal(f.world, "findings", f.findings(), "")
	f.sql("create table elsewhere as select * from followed")
	f.sql("drop table followed")
	if found := f.findings(); !strings.Contains(found, `follower: the statement of the follower "rows" of queue payments cannot be run`) {
		f.Errorf("findings: %s", found)
	}
	if err := f.b.Store.Unfollow(f.ctx, "rows"); err != nil {
		f.Fatal(err)
	}
	if err := f.b.Store.Follow(f.ctx, sluice.Follower{Name: "rows", Queue: queue, Statement: followed}); !errors.Is(err, sluice.ErrInvalid) {
		f.Errorf("a statement that could be run once, and whose table is gone: error %v", err)
	}
	f.sql("create table followed as select * from elsewhere")
	f.follow(sluice.Follower{Name: "rows", Queue: queue, Statement: followed})
	f.sql(f.b.LoseTrigger)
	if found := f.findings(); !strings.Contains(found, `follower: the follower "rows" of queue payments is not run with each move`) {
		f.Errorf("findings: %s", found)
	}
	f.follow(sluice.Follower{Name: "rows", Queue: queue, Statement: followed})
	equal(f.world, "findings", f.findings(), "")
}

// findings lists what the store's health says of followers and of what is not Sluice's.
func (f *followWorld) findings() string {
	f.Helper()
	health, err := f.b.Store.Health(f.ctx, health.Options{})
	if err != nil {
		f.Fatal(err)
	}
	var out []string
	for _, finding := range health.Findings {
		if (finding.Check == "follower" || finding.Check == "foreign") && !finding.Well {
			out = append(out, finding.Check+": "+finding.What)
		}
	}
	return strings.Join(out, "; ")
}
