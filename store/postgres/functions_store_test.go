package postgres_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/pgtest"
	"github.com/sluice-queue/sluice/store/postgres"
	"github.com/sluice-queue/sluice/store/storetest"
)

// functionStore is a store whose verbs are the functions for other languages: Enqueue, Claim, Renew, SaveCheckpoint,
// Settle, Requeue, Recover and the pauses of SaveQueue; and of each Outlook it makes sure that the function why says of
// the job what programs say.
//
// There are no functions for the rest, which goes the way of programs: the settings of queues, tiers and tenants; plans;
// cancel, reschedule and prune; expire, mend and the counts of waves, which are upkeep's; what an engine is asked
// (Intend, Dispatches, StrayRuns); claims of jobs before they are due; and looking jobs and the audit up.
type functionStore struct {
	*postgres.Store
}

func openFunctions(t *testing.T) storetest.Bench {
	t.Helper()
	bench := openOn(t, newWithFunctions(t))
	bench.Store = functionStore{bench.Store.(*postgres.Store)}
	bench.Other = functionStore{bench.Other.(*postgres.Store)}
	return bench
}

func TestFunctionsObeyTheRules(t *testing.T) {
	t.Parallel()
	storetest.Run(t, openFunctions)
}

func TestFunctionsAgreeWithTheModel(t *testing.T) {
	t.Parallel()
	storetest.Model(t, openFunctions)
}

func TestFunctionsKeepLimitsAndGetNothingStuck(t *testing.T) {
	t.Parallel()
	storetest.Turns(t, openFunctions)
}

// named gives an error of a function the name that the store's has.
func named(err error) error {
	var server *pgconn.PgError
	switch {
	case err != nil && err.Error() == "closed pool":
		return fmt.Errorf("%w: %w", sluice.ErrUnavailable, err)
	case !errors.As(err, &server):
		return err
	}
	for code, name := range map[string]error{
		"SL001": sluice.ErrLost, "SL003": sluice.ErrNotAllowed, "SL004": sluice.ErrInvalid, "SL005": sluice.ErrNotFound, "SL006": sluice.ErrDuplicate,
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

// again tries what may succeed a little later, as a worker in another language does.
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

func orZero[T any](value *T) (zero T) {
	if value == nil {
		return zero
	}
	return *value
}

// jsonOf writes a job as enqueue_many takes it, its payload character for character.
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
	set("after_failure", string(j.AfterFailure))
	if j.KeyWindow > 0 {
		object["key_window"] = micros(j.KeyWindow)
	}
	if j.Delay > 0 {
		object["delay"] = micros(j.Delay)
	}
	if !j.DueAt.IsZero() {
		object["due_at"] = j.DueAt
	}
	if !j.ExpiresAt.IsZero() {
		object["expires_at"] = j.ExpiresAt
	}
	if len(j.Labels) > 0 {
		object["labels"] = j.Labels
	}
	if j.MaxAttempts > 0 {
		object["max_attempts"] = j.MaxAttempts
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

func micros(d time.Duration) string { return fmt.Sprintf("%d microseconds", d.Microseconds()) }

func (s functionStore) enqueueOne(ctx context.Context, j sluice.Insert) ([]sluice.Receipt, error) {
	arguments := pgx.NamedArgs{
		"queue": j.Queue, "payload": string(j.Payload), "tenant": j.Tenant, "key": j.Key, "scope": orElse(string(j.KeyScope), "unfinished"),
		"rule": orElse(string(j.OnDuplicate), "keep"), "priority": j.Priority, "order_key": j.OrderKey, "after": textsOf(j.After),
		"after_failure": string(j.AfterFailure), "id": j.ID.String(), "window": nil, "delay": nil, "due": nil, "expires": nil, "labels": nil, "attempts": nil,
	}
	if j.KeyWindow > 0 {
		arguments["window"] = micros(j.KeyWindow)
	}
	if j.Delay > 0 {
		arguments["delay"] = micros(j.Delay)
	}
	if !j.DueAt.IsZero() {
		arguments["due"] = j.DueAt
	}
	if !j.ExpiresAt.IsZero() {
		arguments["expires"] = j.ExpiresAt
	}
	if len(j.Labels) > 0 {
		arguments["labels"] = j.Labels
	}
	if j.MaxAttempts > 0 {
		arguments["attempts"] = j.MaxAttempts
	}
	receipts, err := again(func() ([]sluice.Receipt, error) {
		rows, err := s.Pool().Query(ctx, `select id, duplicate, replaced from sluice.enqueue(queue => @queue, payload => @payload::text::json, tenant => @tenant,
			key => @key, key_scope => @scope, key_window => @window::text::interval, on_duplicate => @rule, due_at => @due::timestamptz, delay => @delay::text::interval,
			priority => @priority::integer, expires_at => @expires::timestamptz, labels => @labels::jsonb, max_attempts => @attempts::integer,
			order_key => @order_key, after => @after::text[]::uuid[], after_failure => @after_failure, job_id => @id::text::uuid, new_queue => true)`, arguments)
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
	if err != nil && isCode(err, "SL005") {
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
	if request.Lead > 0 {
		return s.Store.Claim(ctx, request)
	}
	jobs, err := again(func() ([]*sluice.Claim, error) {
		rows, err := s.Pool().Query(ctx, `select id, token, attempt, payload::text, due_at, lease_until, tenant, key, order_key, priority, generation, attempts,
			releases, recoveries, max_attempts, labels, checkpoint::text, error, claimed_at, created_at, expires_at, after::text[], after_failure, queue, start_at
			from sluice.claim(queues => array[$1::text], holder => $2, batch => $3::integer, lease_seconds => $4::double precision, claim_token => $5::text::uuid, reclaim => false, ageing => $6)`,
			request.Queue, request.Holder, min(request.Limit, 1000), request.Lease.Seconds(), sluice.ID(request.Token).String(), request.Ageing)
		if err != nil {
			return nil, err
		}
		return pgx.CollectRows(rows, func(row pgx.CollectableRow) (*sluice.Claim, error) { return scanFunctionClaim(row, request) })
	})
	if isCode(err, "SL002") {
		return sluice.Claimed{NextDue: -1}, nil
	}
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
	var tenant, key, orderKey, checkpoint, failure, failing *string
	var maxAttempts *int
	var expiresAt *time.Time
	var startAt time.Time
	var after []string
	err := row.Scan((*[16]byte)(&c.ID), (*[16]byte)(&c.Token), &attempt, &payload, &c.DueAt, &c.LeaseUntil, &tenant, &key, &orderKey, &c.Priority, &c.Generation,
		&c.Attempts, &c.Releases, &c.Recoveries, &maxAttempts, &c.Labels, &checkpoint, &failure, &c.ClaimedAt, &c.CreatedAt, &expiresAt, &after, &failing, &c.Queue, &startAt)
	if err != nil {
		return nil, err
	}
	if attempt != c.Attempts+1 || startAt.Before(c.ClaimedAt) {
		return nil, fmt.Errorf("attempt %d after %d failed ones, claimed at %s to start at %s", attempt, c.Attempts, c.ClaimedAt, startAt)
	}
	c.Payload, c.Tenant, c.Key, c.OrderKey, c.Error = json.RawMessage(payload), orZero(tenant), orZero(key), orZero(orderKey), orZero(failure)
	c.MaxAttempts, c.AfterFailure, c.ExpiresAt = orZero(maxAttempts), sluice.AfterFailure(orZero(failing)), orZero(expiresAt)
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

func (s functionStore) Renew(ctx context.Context, renewals []sluice.Renewal) (lost []sluice.ID, err error) {
	for _, r := range renewals {
		var until time.Time
		err := s.Pool().QueryRow(ctx, "select sluice.renew(id => $1::text::uuid, token => $2::text::uuid, lease_seconds => $3)", r.ID.String(), sluice.ID(r.Token).String(),
			r.Lease.Seconds()).Scan(&until)
		if isCode(err, "SL001") {
			lost, err = append(lost, r.ID), nil
		}
		if err != nil {
			return nil, named(err)
		}
	}
	return lost, nil
}

func (s functionStore) SaveCheckpoint(ctx context.Context, id sluice.ID, token sluice.Token, checkpoint json.RawMessage) error {
	_, err := s.Pool().Exec(ctx, "select sluice.checkpoint(id => $1::text::uuid, token => $2::text::uuid, checkpoint => $3::text::json)", id.String(), sluice.ID(token).String(), string(checkpoint))
	if isCode(err, "SL001") {
		// The function raises an error, with which its own word to the audit would be undone. Here the rule's is given.
		return s.Store.SaveCheckpoint(ctx, id, token, checkpoint)
	}
	return named(err)
}

// Settle goes through complete_many and release_many; where there is more to say than those take, and for the moves of
// dispatchers, through the function that all of them are made of.
func (s functionStore) Settle(ctx context.Context, settlements []sluice.Settlement) ([]error, error) {
	errs := make([]error, len(settlements))
	type key struct {
		event  sluice.Event
		poison bool
		inTx   bool
		round  int
		plain  bool
		delay  time.Duration
		reason string
	}
	groups := make(map[key][]int)
	var order []key
	rounds := make(map[sluice.ID]int)
	for i, in := range settlements {
		k := key{event: in.Event, poison: in.Poison, inTx: in.InTx, round: rounds[in.ID]}
		if k.plain = !in.InTx && (in.Event == sluice.EventComplete || in.Event == sluice.EventRelease && in.Holder == ""); k.plain && in.Event == sluice.EventRelease {
			k.delay, k.reason = in.Delay, in.Reason
		}
		rounds[in.ID]++
		if groups[k] == nil {
			order = append(order, k)
		}
		groups[k] = append(groups[k], i)
	}
	for _, k := range order {
		states, err := again(func() ([]string, error) { return s.settleGroup(ctx, settlements, groups[k], k.plain) })
		if isCode(err, "SL004") {
			err = nil
			states = slices.Repeat([]string{"not allowed"}, len(groups[k]))
		}
		if err != nil {
			return nil, named(err)
		}
		for n, i := range groups[k] {
			switch states[n] {
			case "lost":
				errs[i] = sluice.ErrLost
			case "not allowed":
				errs[i] = sluice.ErrNotAllowed
			}
		}
	}
	return errs, nil
}

func (s functionStore) settleGroup(ctx context.Context, settlements []sluice.Settlement, group []int, plain bool) ([]string, error) {
	first := settlements[group[0]]
	var ids, tokens, delays []string
	var results, errors, stacks, reasons, refs, actors []*string
	for _, i := range group {
		in := settlements[i]
		ids, tokens, delays = append(ids, in.ID.String()), append(tokens, sluice.ID(in.Token).String()), append(delays, micros(in.Delay))
		var result *string
		if in.Result != nil {
			result = new(string)
			*result = string(in.Result)
		}
		results = append(results, result)
		errors, stacks, reasons = append(errors, textOrNull(sluice.StoredText(in.Error))), append(stacks, textOrNull(sluice.StoredText(in.Stack))), append(reasons, textOrNull(in.Reason))
		refs, actors = append(refs, textOrNull(in.Ref)), append(actors, textOrNull(in.Holder))
	}
	sql, arguments := "", []any{ids, tokens}
	switch {
	case plain && first.Event == sluice.EventComplete:
		sql = "select state from sluice.complete_many(ids => $1::text[]::uuid[], tokens => $2::text[]::uuid[], results => $3::text[]::json[])"
		arguments = append(arguments, results)
	case plain:
		sql = "select state from sluice.release_many(ids => $1::text[]::uuid[], tokens => $2::text[]::uuid[], delay_seconds => nullif($3::double precision, 0), reason => $4)"
		arguments = append(arguments, first.Delay.Seconds(), textOrNull(first.Reason))
	default:
		sql = `select state from sluice._settle(ids => $1::text[]::uuid[], tokens => $2::text[]::uuid[], event => $3,
			results => array(select sluice._bytes(r::json) from unnest($4::text[]) as r), delays => $5::text[]::interval[], errors => $6::text[], stacks => $7::text[],
			reasons => $8::text[], refs => $9::text[], actors => $10::text[], poison => $11,
			in_tx => array_fill($12::boolean, array[cardinality($1::text[])])) order by no`
		arguments = append(arguments, string(first.Event), results, delays, errors, stacks, reasons, refs, actors, first.Poison, first.InTx)
	}
	rows, err := s.Pool().Query(ctx, sql, arguments...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

func textOrNull(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

func (s functionStore) Requeue(ctx context.Context, ids []sluice.ID, act sluice.Act) ([]error, error) {
	var actID *string
	if !act.ID.IsZero() {
		text := act.ID.String()
		actID = &text
	}
	states, err := again(func() ([]string, error) {
		rows, err := s.Pool().Query(ctx, "select state from sluice.requeue(ids => $1::text[]::uuid[], reason => $2, actor => $3, act_id => $4::text::uuid)",
			textsOf(ids), orElse(act.Reason, "no reason"), act.By, actID)
		if err != nil {
			return nil, err
		}
		return pgx.CollectRows(rows, pgx.RowTo[string])
	})
	if err != nil {
		return nil, named(err)
	}
	errs := make([]error, len(ids))
	for i, state := range states {
		errs[i] = map[string]error{"duplicate": sluice.ErrDuplicate, "not allowed": sluice.ErrNotAllowed, "unknown": sluice.ErrNotFound}[state]
	}
	return errs, nil
}

func (s functionStore) Recover(ctx context.Context, queue string, limit int, by string) (out sluice.Recovered, err error) {
	err = s.Pool().QueryRow(ctx, "select requeued, buried from sluice.requeue_expired(queue => $1, batch => $2, actor => $3)", queue, limit, by).Scan(&out.Requeued, &out.Buried)
	if isCode(err, "SL002") {
		err = nil
	}
	return out, named(err)
}

// SaveQueue pauses and resumes through the functions, where nothing else is changed.
func (s functionStore) SaveQueue(ctx context.Context, queue sluice.Queue, act sluice.Act) (sluice.Queue, error) {
	before, err := s.queueNamed(ctx, queue.Name)
	if err != nil {
		return sluice.Queue{}, err
	}
	same := before.Settings
	same.Paused, same.PausedUntil = queue.Settings.Paused, queue.Settings.PausedUntil
	moved := before.Settings.Paused != queue.Settings.Paused
	if before.Version == 0 || before.Version != queue.Version || same != queue.Settings || !moved || len(before.Plans)+len(queue.Plans) > 0 || before.Untold() ||
		!queue.Settings.Paused && !queue.Settings.PausedUntil.IsZero() {
		return s.Store.SaveQueue(ctx, queue, act)
	}
	sql, arguments := "select sluice.resume(queue => $1, reason => $2, actor => $3)", []any{queue.Name, orElse(act.Reason, "no reason"), act.By}
	if queue.Settings.Paused {
		sql = "select sluice.pause(queue => $1, reason => $2, actor => $3, until => $4)"
		var until *time.Time
		if at := queue.Settings.PausedUntil; !at.IsZero() {
			until = &at
		}
		arguments = append(arguments, until)
	}
	var changed bool
	if err := s.Pool().QueryRow(ctx, sql, arguments...).Scan(&changed); err != nil {
		return sluice.Queue{}, named(err)
	}
	saved, err := s.queueNamed(ctx, queue.Name)
	if err == nil && (!changed || saved.Untold()) {
		err = fmt.Errorf("changed %v; the audit was not told of %+v", changed, saved.Settings)
	}
	return saved, err
}

func (s functionStore) queueNamed(ctx context.Context, name string) (sluice.Queue, error) {
	queues, err := s.Queues(ctx)
	for _, q := range queues {
		if q.Name == name {
			return q, err
		}
	}
	return sluice.Queue{}, err
}

// Outlook makes sure that the function why says of a job what programs say.
func (s functionStore) Outlook(ctx context.Context, id sluice.ID) (sluice.Outlook, error) {
	outlook, err := s.Store.Outlook(ctx, id)
	if err != nil {
		return outlook, err
	}
	said, err := sluice.NewClient(s.Store, sluice.ClientOptions{}).Why(ctx, id)
	if err != nil {
		return outlook, err
	}
	rows, err := s.Pool().Query(ctx, "select gate, open, says, until from sluice.why(job_id => $1::text::uuid)", id.String())
	if err != nil {
		return outlook, err
	}
	gates, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (g sluice.Gate, err error) {
		var until *time.Time
		err = row.Scan(&g.Name, &g.Open, &g.Says, &until)
		g.Until = orZero(until)
		return g, err
	})
	if err != nil {
		return outlook, named(err)
	}
	same := slices.EqualFunc(gates, said.Gates, func(a, b sluice.Gate) bool {
		return a.Name == b.Name && a.Open == b.Open && a.Says != "" && a.Until.IsZero() == b.Until.IsZero() && a.Until.Sub(b.Until).Abs() < time.Second
	})
	if !same {
		return outlook, fmt.Errorf("why says\n%+v\nand programs say\n%+v", gates, said.Gates)
	}
	return outlook, nil
}

// withFunctions is a database with the functions, which are made once; each test has a copy of it.
var withFunctions = sync.OnceValues(func() (string, error) {
	url, err := pgtest.KeepDatabase()
	if err == nil {
		_, err = postgres.Migrate(context.Background(), url)
	}
	return url, err
})

func newWithFunctions(t *testing.T) string {
	t.Helper()
	template, err := withFunctions()
	if err != nil {
		t.Fatal(err)
	}
	return pgtest.CopyDatabase(t, template)
}
