package postgres

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// A connection of a store's own keeps the plans of the statements that each job costs. To plan one takes the server three
// to ten times as long as to run it for a job. A plan that was made while a table was small may read all of it later, so
// that plans are made anew once a statement was slow, and each two minutes.
const (
	slowStatement = 10 * time.Millisecond
	minPlanAge    = time.Second // however slow statements are: they may wait for a lock
	maxPlanAge    = 2 * time.Minute
)

// pool is where a store's statements get their connections.
type pool struct {
	*pgxpool.Pool
	plans    *plans // nil: the pool is the caller's, and keeps no plans for us
	together bool   // statements that are sent together are planned as those that are sent alone
}

func (p pool) keepsPlans() bool { return p.plans != nil && p.plans.kept.Load() }

// forgetPlans ends the keeping of plans.
func (p pool) forgetPlans() {
	if p.keepsPlans() {
		p.plans.kept.Store(false)
		p.Reset() // also of statements that are sent together
	}
}

// Begin begins a transaction whose statements are planned, and keep their plans, as those of the pool are.
func (p pool) Begin(ctx context.Context) (pgx.Tx, error) {
	keeps := p.keepsPlans()
	tx, err := p.BeginTx(ctx, pgx.TxOptions{BeginQuery: "begin;\n" + walkSQL(keeps)})
	if err != nil || !keeps {
		return tx, err
	}
	return keepingTx{tx}, nil
}

type keepingTx struct{ pgx.Tx }

func (keepingTx) keepsPlans() bool { return true }

// keepingConn is a connection of the pool that somebody holds.
type keepingConn struct {
	*pgxpool.Conn
	keeps bool
}

func (c keepingConn) keepsPlans() bool { return c.keeps }

// keepsPlans reports whether a statement's plan is kept where it runs.
func keepsPlans(db rowsQuerier, sql string) bool {
	keeper, may := db.(interface{ keepsPlans() bool })
	return may && keeper.keepsPlans() && perJob[sql]
}

// perJob are the statements that each job, each look for one, or each process that waits for one costs, with the settings of its
// queue; and those that look at each of many queues.
var perJob = setOf(
	enqueueSQL, enqueueNewSQL, enqueueOneSQL, claimSQL, claimTogetherSQL, lookSQL, nextDueSQL, claimedBeforeSQL, renewSQL, checkpointSQL, intendSQL,
	endSQL, backSQL, awaySQL, auditSettledSQL, unblockSQL, jobSQL, jobStatusSQL, depthSQL, beatAndCheckSQL, aliveSQL, notifySQL, notifyTakenSQL, tooNewSQL, crowdsSQL, queuesNamedSQL, queueMarksSQL,
	flowLockSQL, flowAddSQL, flowTakeSQL, flowThereSQL, inFlightSQL, permitHeldSQL, permitPutSQL,
	lineHintsSQL, lineAdoptSQL, lineDissolveSQL, lineDueSQL, lineWakeSQL, lineFirstSQL, lineLimitsSQL,
	lineHeldSQL, lineClaimSQL, lineLookSQL, lineKeepSQL, lineNextSQL,
)

func setOf(texts ...string) map[string]bool {
	set := make(map[string]bool, len(texts))
	for _, text := range texts {
		set[text] = true
	}
	return set
}

// plans looks after the plans that the connections of a pool keep.
type plans struct {
	kept atomic.Bool // false: a pooler gives each transaction another server process, which knows none of our statements
	slow time.Duration
	age  time.Duration // that plans reach although statements are slow
}

// planAge is since when a connection keeps its plans, and whether a statement was slow since then.
type planAge struct {
	since time.Time
	slow  bool
	wait  time.Duration // how old they become although a statement was slow, if that is more than at first
}

// anew says whether plans are to be made anew now, and how old those may become. Statements that are slow again and again are
// slow for another reason, such as a machine that is full or a disk that takes long to write: each time plans are kept twice
// as long.
func (a planAge) anew(now time.Time, first time.Duration) (next planAge, is bool) {
	kept, wait := now.Sub(a.since), max(a.wait, first)
	if kept < wait || !a.slow && kept < maxPlanAge {
		return a, false
	}
	next.since = now
	if a.slow {
		next.wait = min(2*wait, maxPlanAge)
	}
	return next, true
}

const planAgeKey = "sluice plans"

func ageOf(conn *pgx.Conn) *planAge {
	data := conn.PgConn().CustomData()
	age, there := data[planAgeKey].(*planAge)
	if !there {
		age = &planAge{since: time.Now()}
		data[planAgeKey] = age
	}
	return age
}

// apply lets the connections of a pool keep plans.
func (p *plans) apply(config *pgxpool.Config) {
	p.slow, p.age = slowStatement, minPlanAge
	p.kept.Store(true)
	connect := config.BeforeConnect
	config.BeforeConnect = func(ctx context.Context, c *pgx.ConnConfig) error {
		c.DefaultQueryExecMode = planEachTime
		if p.kept.Load() {
			c.DefaultQueryExecMode = pgx.QueryExecModeCacheStatement // for those that are sent together
		}
		return connect(ctx, c)
	}
	config.PrepareConn = p.refresh
	config.ConnConfig.Tracer = stopwatch{p}
}

// refresh has a connection plan anew what it runs next, if it is time for that.
func (p *plans) refresh(ctx context.Context, conn *pgx.Conn) (usable bool, err error) {
	age := ageOf(conn)
	next, anew := age.anew(time.Now(), p.age)
	if !anew || !p.kept.Load() {
		return true, nil
	}
	*age = next
	_, err = conn.PgConn().Exec(ctx, "discard plans").ReadAll()
	return err == nil, nil // another connection is taken
}

// unknownStatement reports whether the server does not know a statement that it has prepared, or knows another of its name: a
// pooler has come between since the store was opened.
func unknownStatement(err error) bool {
	var server *pgconn.PgError
	return errors.As(err, &server) && (server.Code == "26000" || server.Code == "42P05")
}

// outdatedPlan reports whether the schema has changed below a plan. The driver forgets the statement.
func outdatedPlan(server *pgconn.PgError) bool {
	return server.Code == "0A000" && strings.Contains(server.Message, "cached plan")
}

// stopwatch notes on a connection that a statement was slow.
type stopwatch struct{ plans *plans }

type stopwatchKey struct{}

func (stopwatch) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	return context.WithValue(ctx, stopwatchKey{}, time.Now())
}

func (w stopwatch) TraceQueryEnd(ctx context.Context, conn *pgx.Conn, _ pgx.TraceQueryEndData) {
	w.stop(ctx, conn)
}

func (stopwatch) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return context.WithValue(ctx, stopwatchKey{}, time.Now())
}

func (stopwatch) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

func (w stopwatch) TraceBatchEnd(ctx context.Context, conn *pgx.Conn, _ pgx.TraceBatchEndData) {
	w.stop(ctx, conn)
}

func (w stopwatch) stop(ctx context.Context, conn *pgx.Conn) {
	if begun, timed := ctx.Value(stopwatchKey{}).(time.Time); timed && time.Since(begun) > w.plans.slow {
		ageOf(conn).slow = true
	}
}
