package postgres_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/pgtest"
	"github.com/sluice-queue/sluice/internal/storing"
	"github.com/sluice-queue/sluice/pressure"
	"github.com/sluice-queue/sluice/store/postgres"
	"github.com/sluice-queue/sluice/store/storetest"
)

// functionStore is a store whose verbs call the functions for other languages: Enqueue, Claim, Renew, SaveCheckpoint,
// Settle, Requeue, Recover and the pauses of SaveQueue. Position also checks that the function why agrees with
// programs.
//
// The other verbs go to the store, because they have no functions: settings of queues, tiers and tenants; scheduled
// changes; cancel, reschedule and prune; the verbs of upkeep; the verbs of engines; claims of jobs before they are due;
// reads of jobs and of the audit.
type functionStore struct {
	*postgres.Store
	limited *atomic.Bool // a job had a limit, so jobs without a limit must remove the limit from their queue
}

// Pool returns a closed pool once the store is closed, because the real connections may serve other stores.
func (s functionStore) Pool() *pgxpool.Pool {
	if s.Closed() {
		return closedPool()
	}
	return s.Store.Pool()
}

var closedPool = sync.OnceValue(func() *pgxpool.Pool {
	pool, err := pgxpool.New(context.Background(), "host=127.0.0.1")
	if err != nil {
		panic(err)
	}
	pool.Close()
	return pool
})

func openFunctions(t *testing.T) storetest.Bench {
	t.Helper()
	return throughFunctions(openAt(t, migrated.Copy(t)))
}

func throughFunctions(bench storetest.Bench) storetest.Bench {
	var limited atomic.Bool
	bench.Store = functionStore{bench.Store.(*postgres.Store), &limited}
	bench.Other = functionStore{bench.Other.(*postgres.Store), &limited}
	bench.CountsNothing, bench.Silent = true, true
	return bench
}

func TestFunctionsObeyTheRules(t *testing.T) {
	t.Parallel()
	used := &databases{owner: t, make: migrated.Copy}
	storetest.Run(t, func(t *testing.T) storetest.Bench { return throughFunctions(used.open(t)) })
}

func TestFunctionsAgreeWithTheModel(t *testing.T) {
	t.Parallel()
	storetest.Model(t, openFunctions)
}

func TestFunctionsKeepLimitsAndGetNothingStuck(t *testing.T) {
	t.Parallel()
	storetest.Turns(t, openFunctions)
}

// named returns the error of a function as the error that the store would return.
func named(err error) error {
	var server *pgconn.PgError
	switch {
	case err != nil && err.Error() == "closed pool":
		return fmt.Errorf("%w: %w", sluice.ErrUnavailable, err)
	case !errors.As(err, &server):
		return err
	}
	for code, name := range map[string]error{
		"22021": sluice.ErrInvalid, "SL001": sluice.ErrLost, "SL003": sluice.ErrNotAllowed, "SL004": sluice.ErrInvalid, "SL005": sluice.ErrNotFound, "SL006": sluice.ErrDuplicate, "SL007": sluice.ErrNotAllowed, "SL009": sluice.ErrConflict,
	} {
		if server.Code == code {
			return fmt.Errorf("%w: %w", name, err)
		}
	}
	return err
}

func isCode(err error, code string) bool {
	var server *pgconn.PgError
	return errors.As(err, &server) && server.Code == code
}

// again repeats a call while the database reports a deadlock or a conflict, as a worker in another language does.
func again[T any](do func() ([]T, error)) ([]T, error) {
	for range 50 {
		rows, err := do()
		if !isCode(err, "40P01") && !isCode(err, "40001") && !isCode(err, "55P03") {
			return rows, err
		}
	}
	return do()
}

func (s functionStore) Enqueue(ctx context.Context, jobs []sluice.Insert) ([]sluice.Receipt, error) {
	if slices.ContainsFunc(jobs, func(j sluice.Insert) bool { return j.Known }) {
		return s.Store.Enqueue(ctx, jobs) // functions do not learn which settings their callers have read
	}
	if err := s.limit(ctx, jobs); err != nil {
		return nil, err
	}
	if len(jobs) == 1 {
		return s.enqueueOne(ctx, jobs[0])
	}
	receipts := make([]sluice.Receipt, len(jobs))
	failed := make(map[int]error)
	var list [][]byte
	for _, j := range jobs {
		list = append(list, jsonOf(j))
	}
	type row struct {
		No        int
		ID        *sluice.ID
		Duplicate *bool
		Replaced  *sluice.ID
		Error     *string
		Code      *string
	}
	rows, err := again(func() ([]row, error) {
		rows, err := s.Pool().Query(ctx, "select no, id, duplicate, replaced, error, code from sluice.enqueue_many(jobs => $1::json, new_queue => true)",
			"["+string(bytes.Join(list, []byte(",")))+"]")
		if err != nil {
			return nil, err
		}
		return pgx.CollectRows(rows, pgx.RowToStructByPos[row])
	})
	if err != nil {
		return nil, named(err)
	}
	for _, r := range rows {
		if r.Error != nil && *r.Code == "SL010" {
			failed[r.No-1] = fullOf(*r.Error, len(jobs))
			continue
		}
		if r.Error != nil {
			failed[r.No-1] = named(&pgconn.PgError{Code: *r.Code, Message: *r.Error})
			continue
		}
		receipts[r.No-1] = sluice.Receipt{ID: *r.ID, Duplicate: *r.Duplicate, Replaced: orZero(r.Replaced)}
	}
	if len(failed) > 0 {
		return receipts, &sluice.BatchError{Failed: failed, Total: len(jobs)}
	}
	return receipts, nil
}

// limit stores the limits that jobs bring as settings of their queues, because functions read the settings.
func (s functionStore) limit(ctx context.Context, jobs []sluice.Insert) error {
	for _, j := range jobs {
		if s.limited.Load() || j.MaxWaiting > 0 || j.TenantMaxWaiting > 0 || j.Shed {
			s.limited.Store(true)
			_, err := s.Pool().Exec(ctx, `insert into sluice.queue as q (name, max_waiting, tenant_max_waiting, shed) values ($1, $2, $3, $4)
				on conflict (name) do update set max_waiting = excluded.max_waiting, tenant_max_waiting = excluded.tenant_max_waiting, shed = excluded.shed
				where (q.max_waiting, q.tenant_max_waiting, q.shed) <> (excluded.max_waiting, excluded.tenant_max_waiting, excluded.shed)`,
				j.Queue, j.MaxWaiting, j.TenantMaxWaiting, j.Shed)
			if err != nil {
				return named(err)
			}
		}
	}
	return nil
}

var fullText = regexp.MustCompile(`^(?:tenant '(.+)' in )?queue (\S+) is full: (\d+) jobs (?:wait, and its \w+ is (\d+); try again after ([\d.]+) s|of one call are more than its \w+ of (\d+); split them)$`)

// fullOf parses the error of a full queue. jobs is the number of jobs of the call.
func fullOf(text string, jobs int) error {
	said := fullText.FindStringSubmatch(text)
	if said == nil {
		return fmt.Errorf("the error of a full queue is %q", text)
	}
	waiting, _ := strconv.Atoi(said[3])
	limit, _ := strconv.Atoi(said[4] + said[6])
	seconds, _ := strconv.ParseFloat("0"+said[5], 64)
	return &pressure.FullError{
		Tenant: said[1], Queue: said[2], Waiting: waiting, Limit: limit, Jobs: jobs, RetryAfter: time.Duration(seconds * float64(time.Second)),
	}
}

func orZero[T any](value *T) (zero T) {
	if value == nil {
		return zero
	}
	return *value
}

// jsonOf writes a job as enqueue_many takes it. The payload stays the same, character for character.
func jsonOf(j sluice.Insert) []byte {
	object := map[string]any{"queue": j.Queue, "job_id": j.ID.String(), "priority": j.Priority}
	set := func(name, value string) {
		if value != "" {
			object[name] = value
		}
	}
	set("tenant", j.Tenant)
	set("key", j.Key)
	set("key_scope", string(j.KeyScope))
	set("on_duplicate", string(j.OnDuplicate))
	set("order_key", j.OrderKey)
	set("limit_key", j.LimitKey)
	if j.Cost > 0 {
		object["cost"] = j.Cost
	}
	set("after_failure", storing.AfterText(j.AfterFailure, j.AfterFailures))
	set("hold", j.Hold)
	if !j.Batch.IsZero() {
		set("batch_id", j.Batch.String())
	}
	for name, value := range optional(j) {
		if value != nil {
			object[name] = value
		}
	}
	if len(j.After) > 0 {
		object["after"] = j.After
	}
	text, err := json.Marshal(object)
	if err != nil {
		panic(err)
	}
	return slices.Concat(text[:len(text)-1], []byte(`,"payload":`), j.Payload, []byte("}"))
}

// optional returns the fields that an insert may leave out, by the names of the functions' arguments; nil: left out.
func optional(j sluice.Insert) map[string]any {
	fields := map[string]any{"key_window": nil, "delay": nil, "due_at": nil, "expires_at": nil, "labels": nil, "max_attempts": nil, "timeout": nil}
	if j.KeyWindow > 0 {
		fields["key_window"] = micros(j.KeyWindow)
	}
	if j.Delay > 0 {
		fields["delay"] = micros(j.Delay)
	}
	if j.Timeout > 0 {
		fields["timeout"] = micros(j.Timeout)
	}
	if !j.DueAt.IsZero() {
		fields["due_at"] = j.DueAt
	}
	if !j.ExpiresAt.IsZero() {
		fields["expires_at"] = j.ExpiresAt
	}
	if len(j.Labels) > 0 {
		fields["labels"] = j.Labels
	}
	if j.MaxAttempts > 0 {
		fields["max_attempts"] = j.MaxAttempts
	}
	return fields
}

func micros(d time.Duration) string { return fmt.Sprintf("%d microseconds", d.Microseconds()) }

func (s functionStore) enqueueOne(ctx context.Context, j sluice.Insert) ([]sluice.Receipt, error) {
	arguments := pgx.NamedArgs{
		"queue": j.Queue, "payload": string(j.Payload), "tenant": j.Tenant, "key": j.Key, "scope": orElse(string(j.KeyScope), "unfinished"),
		"rule": orElse(string(j.OnDuplicate), "keep"), "priority": j.Priority, "order_key": j.OrderKey, "limit_key": j.LimitKey, "cost": costOf(j), "after": textsOf(j.After),
		"after_failure": storing.AfterText(j.AfterFailure, j.AfterFailures), "hold": j.Hold, "id": j.ID.String(), "batch": nil,
	}
	if !j.Batch.IsZero() {
		arguments["batch"] = j.Batch.String()
	}
	maps.Copy(arguments, optional(j))
	receipts, err := again(func() ([]sluice.Receipt, error) {
		rows, err := s.Pool().Query(ctx, `select id, duplicate, replaced from sluice.enqueue(queue => @queue, payload => @payload::text::json, tenant => @tenant,
			key => @key, key_scope => @scope, key_window => @key_window::text::interval, on_duplicate => @rule, due_at => @due_at::timestamptz, delay => @delay::text::interval,
			priority => @priority::integer, expires_at => @expires_at::timestamptz, labels => @labels::jsonb, max_attempts => @max_attempts::integer, timeout => @timeout::text::interval,
			order_key => @order_key, after => @after::text[]::uuid[], after_failure => @after_failure, hold => @hold, limit_key => nullif(@limit_key, ''), cost => @cost::integer, batch_id => @batch::text::uuid, job_id => @id::text::uuid, new_queue => true)`, arguments)
		if err != nil {
			return nil, err
		}
		return pgx.CollectRows(rows, func(row pgx.CollectableRow) (r sluice.Receipt, err error) {
			var replaced *[16]byte
			err = row.Scan((*[16]byte)(&r.ID), &r.Duplicate, &replaced)
			r.Replaced = orZero(replaced)
			return r, err
		})
	})
	var full *pgconn.PgError
	if isCode(err, "SL010") && errors.As(err, &full) {
		return make([]sluice.Receipt, 1), &sluice.BatchError{Failed: map[int]error{0: fullOf(full.Message, 1)}, Total: 1}
	}
	if err != nil && (isCode(err, "SL005") || isCode(err, "SL003")) {
		return make([]sluice.Receipt, 1), &sluice.BatchError{Failed: map[int]error{0: named(err)}, Total: 1}
	}
	return receipts, named(err)
}

func orElse(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

func textsOf[T fmt.Stringer](ids []T) []string {
	out := []string{}
	for _, id := range ids {
		out = append(out, id.String())
	}
	return out
}

func (s functionStore) Claim(ctx context.Context, request sluice.ClaimRequest) (sluice.Claimed, error) {
	if sluice.IsInternalQueue(request.Queue) { // only Sluice's own programs claim from it
		return s.Store.Claim(ctx, request)
	}
	if len(request.Queues) > 0 || request.ClaimAhead > 0 || request.Engine != "" || request.ReportsBegun { // workers in other languages have no such claims
		return s.Store.Claim(ctx, request)
	}
	jobs, err := again(func() ([]*sluice.Claim, error) {
		rows, err := s.Pool().Query(ctx, `select id, token, attempt, payload::text, due_at, lease_until, tenant, key, order_key, priority, generation, attempts,
			releases, recoveries, max_attempts, labels, checkpoint::text, error, claimed_at, created_at, expires_at, after::text[], after_failure, batch_id, queue, start_at, timeout_ms, limit_key, cost
			from sluice.claim(queues => array[$1::text], holder => $2, batch => $3::integer, lease_seconds => $4::double precision, claim_token => $5::text::uuid, reclaim => false, ageing => $6)`,
			request.Queue, request.Holder, min(request.Limit, 1000), request.Lease.Seconds(), sluice.ID(request.Token).String(), request.Ageing)
		if err != nil {
			return nil, err
		}
		return pgx.CollectRows(rows, func(row pgx.CollectableRow) (*sluice.Claim, error) { return scanFunctionClaim(row, request) })
	})
	if err != nil {
		return sluice.Claimed{}, named(err)
	}
	out := sluice.Claimed{Jobs: jobs}
	var seconds *float64
	err = s.Pool().QueryRow(ctx, "select seconds, limited, is_full from sluice.wait(queues => array[$1::text])", request.Queue).Scan(&seconds, &out.Limited, &out.Full)
	if out.NextDue = -1; seconds != nil {
		out.NextDue = time.Duration(math.Ceil(*seconds * 1e9))
	}
	if len(jobs) == request.Limit {
		out.Limited, out.Full = false, false
	}
	return out, err
}

func scanFunctionClaim(row pgx.CollectableRow, request sluice.ClaimRequest) (*sluice.Claim, error) {
	c := &sluice.Claim{}
	c.State, c.Holder = sluice.StateClaimed, request.Holder
	var attempt int
	var payload string
	var tenant, key, orderKey, limitKey, checkpoint, failure, failing *string
	var maxAttempts, timeout, cost *int
	var expiresAt *time.Time
	var startAt time.Time
	var after []string
	var of *[16]byte
	err := row.Scan((*[16]byte)(&c.ID), (*[16]byte)(&c.Token), &attempt, &payload, &c.DueAt, &c.LeaseUntil, &tenant, &key, &orderKey, &c.Priority, &c.Generation,
		&c.Attempts, &c.Releases, &c.Recoveries, &maxAttempts, &c.Labels, &checkpoint, &failure, &c.ClaimedAt, &c.CreatedAt, &expiresAt, &after, &failing, &of, &c.Queue, &startAt, &timeout, &limitKey, &cost)
	if err != nil {
		return nil, err
	}
	if attempt != c.Attempts+1 || startAt.Before(c.ClaimedAt) {
		return nil, fmt.Errorf("attempt %d after %d failed ones, claimed at %s to start at %s", attempt, c.Attempts, c.ClaimedAt, startAt)
	}
	c.Payload, c.Tenant, c.Key, c.OrderKey, c.Error = json.RawMessage(payload), orZero(tenant), orZero(key), orZero(orderKey), orZero(failure)
	c.Timeout = time.Duration(orZero(timeout)) * time.Millisecond
	c.MaxAttempts, c.ExpiresAt = orZero(maxAttempts), orZero(expiresAt)
	if c.AfterFailure, c.AfterFailures, err = storing.AfterRules(orZero(failing)); err != nil {
		return nil, err
	}
	c.Batch, c.LimitKey, c.Cost = orZero(of), orZero(limitKey), orZero(cost)
	if checkpoint != nil {
		c.Checkpoint = json.RawMessage(*checkpoint)
	}
	for _, text := range after {
		id, err := sluice.ParseID(text)
		if err != nil {
			return nil, err
		}
		c.After = append(c.After, id)
	}
	for _, at := range []*time.Time{&c.DueAt, &c.LeaseUntil, &c.ClaimedAt, &c.CreatedAt, &c.ExpiresAt} {
		*at = at.UTC()
	}
	return c, nil
}

// migrated is a template of a database with the schema and the functions.
var migrated = pgtest.Template{Fill: func(ctx context.Context, url string) error {
	_, err := postgres.Migrate(ctx, url)
	return err
}}

// costOf returns the cost of a job as an argument of a function; nil: no cost is given.
func costOf(j sluice.Insert) any {
	if j.Cost == 0 {
		return nil
	}
	return j.Cost
}
