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

// The store's own connections keep the plans of frequent statements. To plan one takes the server 3 to 10 times as
// long as to run it for one job. A plan that was made while a table was small may read all of the table later. So
// the plans are made again after a slow statement, and every 2 minutes.
const (
	slowStatement = 10 * time.Millisecond
	minPlanAge    = time.Second // even after slow statements: they may have waited for a lock
	maxPlanAge    = 2 * time.Minute
)

// pool is the source of connections for a store's statements.
type pool struct {
	*pgxpool.Pool
	plans    *plans // nil: the pool is the caller's, and keeps no plans for the store
	together bool   // statements in a batch are planned like single ones
}

func (p pool) keepsPlans() bool { return p.plans != nil && p.plans.kept.Load() }

// forgetPlans stops keeping plans.
func (p pool) forgetPlans() {
	if p.keepsPlans() {
		p.plans.kept.Store(false)
		p.Reset() // also closes connections that keep plans of batches
	}
}

// beginSQL begins a transaction of the store, whatever isolation the server, the role or the DSN makes the default. Most
// of its statements need the rows that others have committed since it began, after they have waited for a lock.
const beginSQL = "begin isolation level read committed"

// Begin begins a transaction whose statements have the plan settings of the pool, and keep their plans if the pool
// does.
func (p pool) Begin(ctx context.Context) (pgx.Tx, error) {
	keeps := p.keepsPlans()
	tx, err := p.BeginTx(ctx, pgx.TxOptions{BeginQuery: beginSQL + ";\n" + walkSQL(keeps)})
	if err != nil || !keeps {
		return tx, err
	}
	return keepingTx{tx}, nil
}

type keepingTx struct{ pgx.Tx }

func (keepingTx) keepsPlans() bool { return true }

// keepingConn is an acquired connection of the pool.
type keepingConn struct {
	*pgxpool.Conn
	keeps bool
}

func (c keepingConn) keepsPlans() bool { return c.keeps }

// keepsPlans reports whether db keeps the plan of a statement.
func keepsPlans(db rowsQuerier, sql string) bool {
	keeper, may := db.(interface{ keepsPlans() bool })
	return may && keeper.keepsPlans() && perJob[sql]
}

// perJob are the frequent statements: each job costs them, each look for a job, or each process that waits for one.
// They include reading a queue's settings, and looking at many queues. limitToldSQL is not among them: as a kept plan it
// compares each change of a limit with each lane.
var perJob = setOf(
	enqueueSQL, enqueueNewSQL, enqueueBatchSQL, enqueueOneSQL, batchEnterSQL, batchStatesSQL, claimSQL, claimTogetherSQL, lookSQL, nextDueSQL, claimedBeforeSQL, renewSQL, checkpointSQL, intendSQL,
	endSQL, backSQL, awaySQL, auditSettledSQL, unblockSQL, jobSQL, jobStatusSQL, depthSQL, heartbeatAndCheckSQL, aliveSQL, notifySQL, notifyTakenSQL, tooNewSQL, crowdsSQL, queuesNamedSQL, queueVersionsSQL,
	flowLockSQL, flowAddSQL, flowTakeSQL, flowThereSQL, inFlightSQL, permitHeldSQL, permitPutSQL,
	namedLimitLockSQL, namedLimitReadSQL, namedLimitInFlightSQL,
	limitJudgeSQL, limitPickSQL, limitPickTenantsSQL, limitClaimSQL, limitKeyTakeSQL, limitLaneNextSQL,
	tenantChangeTakeSQL, tenantQueueAdoptSQL, tenantQueueDissolveSQL, tenantQueueDueSQL, tenantQueueWakeSQL, tenantQueueFirstSQL, tenantQueueLimitsSQL,
	tenantQueueHeldSQL, tenantQueueClaimSQL, tenantQueueLookSQL, tenantQueueKeepSQL, tenantQueueNextSQL,
)

func setOf(texts ...string) map[string]bool {
	set := make(map[string]bool, len(texts))
	for _, text := range texts {
		set[text] = true
	}
	return set
}

// plans manages the plans that the connections of a pool keep.
type plans struct {
	kept atomic.Bool // false: a pooler gives each transaction another server process, which knows no prepared statement
	slow time.Duration
	age  time.Duration // the least age of plans, even if statements are slow
}

// planAge is the time since which a connection keeps its plans, and whether a statement was slow since then.
type planAge struct {
	since time.Time
	slow  bool
	wait  time.Duration // the least age despite slow statements, if above the initial one
}

// anew reports whether to make plans again now, and sets the least age of the new ones. If statements are slow
// again and again, the plans are not the cause: a machine may be full, or a disk slow to write. So the least age
// doubles each time.
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

// apply makes the connections of a pool keep plans.
func (p *plans) apply(config *pgxpool.Config) {
	p.slow, p.age = slowStatement, minPlanAge
	p.kept.Store(true)
	connect := config.BeforeConnect
	config.BeforeConnect = func(ctx context.Context, c *pgx.ConnConfig) error {
		c.DefaultQueryExecMode = planEachTime
		if p.kept.Load() {
			c.DefaultQueryExecMode = pgx.QueryExecModeCacheStatement // for batches
		}
		return connect(ctx, c)
	}
	config.PrepareConn = p.refresh
	config.ConnConfig.Tracer = stopwatch{p}
}

// refresh discards a connection's plans if it is time for that.
func (p *plans) refresh(ctx context.Context, conn *pgx.Conn) (usable bool, err error) {
	age := ageOf(conn)
	next, anew := age.anew(time.Now(), p.age)
	if !anew || !p.kept.Load() {
		return true, nil
	}
	*age = next
	_, err = conn.PgConn().Exec(ctx, "discard plans").ReadAll()
	return err == nil, nil // the pool takes another connection
}

// unknownStatement reports whether the server does not know a prepared statement, or knows another one by its name.
// Then a pooler has come between since the store was opened.
func unknownStatement(err error) bool {
	var server *pgconn.PgError
	return errors.As(err, &server) && (server.Code == "26000" || server.Code == "42P05")
}

// outdatedPlan reports whether the schema has changed below a plan. The driver forgets the statement.
func outdatedPlan(server *pgconn.PgError) bool {
	return server.Code == "0A000" && strings.Contains(server.Message, "cached plan")
}

// stopwatch marks a connection on which a statement was slow.
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
