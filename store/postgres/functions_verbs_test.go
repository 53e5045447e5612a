package postgres_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/edit"
	"github.com/sluice-queue/sluice/explain"
)

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
		// The function raises an error, which would roll back its audit entry. The store's own verb writes the entry that
		// the rule expects.
		return s.Store.SaveCheckpoint(ctx, id, token, checkpoint)
	}
	return named(err)
}

// Settle calls complete_many and release_many. Settlements that need more arguments, and moves of dispatchers, use the
// internal function below all of them.
func (s functionStore) Settle(ctx context.Context, settlements []sluice.Settlement) ([]error, error) {
	errs := make([]error, len(settlements))
	type key struct {
		event  sluice.Event
		poison bool
		inTx   bool
		round  int
		plain  bool
		large  bool // the function would refuse the whole call
		delay  time.Duration
		reason string
	}
	groups := make(map[key][]int)
	var order []key
	rounds := make(map[sluice.ID]int)
	for i, in := range settlements {
		k := key{event: in.Event, poison: in.Poison, inTx: in.InTx, round: rounds[in.ID], large: len(in.Result) > sluice.MaxResultBytes || !utf8.Valid(in.Result)}
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
		if (isCode(err, "SL004") || isCode(err, "22021")) && k.large {
			for _, i := range groups[k] {
				errs[i] = named(err)
			}
			continue
		}
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
		errors, stacks, reasons = append(errors, textOrNull(sluice.StoredText(in.Error))), append(stacks, textOrNull(sluice.StoredText(in.Stack))), append(reasons, textOrNull(sluice.StoredText(in.Reason)))
		refs, actors = append(refs, textOrNull(in.Ref)), append(actors, textOrNull(in.Holder))
	}
	sql, arguments := "", []any{ids, tokens}
	switch {
	case plain && first.Event == sluice.EventComplete:
		sql = "select state from sluice.complete_many(ids => $1::text[]::uuid[], tokens => $2::text[]::uuid[], results => $3::text[]::json[])"
		arguments = append(arguments, results)
	case plain:
		sql = "select state from sluice.release_many(ids => $1::text[]::uuid[], tokens => $2::text[]::uuid[], delay_seconds => nullif($3::double precision, 0), reason => $4)"
		arguments = append(arguments, first.Delay.Seconds(), textOrNull(sluice.StoredText(first.Reason)))
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
	if act.Undo { // no function undoes a requeue
		return s.Store.Requeue(ctx, ids, act)
	}
	var actID *string
	if !act.ID.IsZero() {
		text := act.ID.String()
		actID = &text
	}
	states, err := again(func() ([]string, error) {
		rows, err := s.Pool().Query(ctx, "select state from sluice.requeue(ids => $1::text[]::uuid[], reason => $2, actor => $3, act_id => $4::text::uuid, beside_open_run => $5)",
			textsOf(ids), orElse(act.Reason, "no reason"), act.By, actID, act.BesideOpenRun)
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

func (s functionStore) EditJob(ctx context.Context, e edit.Edit, act sluice.Act) error {
	expect := new("another")
	if job, err := s.Job(ctx, e.JobID); err == nil && edit.VersionOf(job) == e.Version {
		if err := s.Pool().QueryRow(ctx, "select sluice.job_version(job_id => $1::text::uuid)", e.JobID.String()).Scan(&expect); err != nil {
			return named(err)
		}
	}
	var payload, labels, timeout, actID *string
	if e.Payload != nil {
		payload = new(string(e.Payload))
	}
	if e.Labels != nil {
		text, err := json.Marshal(e.Labels)
		if err != nil {
			return err
		}
		labels = new(string(text))
	}
	if e.Timeout != nil {
		timeout = new(fmt.Sprintf("%d ms", e.Timeout.Milliseconds()))
	}
	if !act.ID.IsZero() {
		actID = new(act.ID.String())
	}
	_, err := s.Pool().Exec(ctx, `select sluice.edit(job_id => $1::text::uuid, reason => $2, payload => $3::text::json, priority => nullif($4, 0), due_at => $5,
		timeout => $6::text::interval, labels => $7::text::jsonb, tenant => $8, limit_key => $9, cost => $10, expect => $11, actor => $12, act_id => $13::text::uuid)`,
		e.JobID.String(), orElse(act.Reason, "no reason"), payload, e.Priority, orNull(e.DueAt), timeout, labels, e.Tenant, e.LimitKey, e.Cost, expect, act.By, actID)
	return named(err)
}

// orNull returns null for the zero instant.
func orNull(at time.Time) *time.Time {
	if at.IsZero() {
		return nil
	}
	return &at
}

func (s functionStore) Hold(ctx context.Context, ids []sluice.ID, act sluice.Act) ([]error, error) {
	return s.actOn(ctx, "hold", ids, act)
}

func (s functionStore) Release(ctx context.Context, ids []sluice.ID, act sluice.Act) ([]error, error) {
	return s.actOn(ctx, "release_hold", ids, act)
}

// actOn calls a function that acts on several jobs.
func (s functionStore) actOn(ctx context.Context, function string, ids []sluice.ID, act sluice.Act) ([]error, error) {
	var actID *string
	if !act.ID.IsZero() {
		text := act.ID.String()
		actID = &text
	}
	states, err := again(func() ([]string, error) {
		rows, err := s.Pool().Query(ctx, "select state from sluice."+function+"(ids => $1::text[]::uuid[], reason => $2, actor => $3, act_id => $4::text::uuid)",
			textsOf(ids), act.Reason, act.By, actID)
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
		errs[i] = map[string]error{"not allowed": sluice.ErrNotAllowed, "unknown": sluice.ErrNotFound}[state]
	}
	return errs, nil
}

func (s functionStore) Recover(ctx context.Context, queue string, limit int, by string) (out sluice.Recovered, err error) {
	err = s.Pool().QueryRow(ctx, "select requeued, buried from sluice.requeue_expired(queue => $1, batch => $2, actor => $3)", queue, limit, by).Scan(&out.Requeued, &out.Buried)
	return out, named(err)
}

// SaveQueue pauses and resumes with the functions if nothing else changes.
func (s functionStore) SaveQueue(ctx context.Context, queue sluice.Queue, act sluice.Act) (sluice.Queue, error) {
	before, err := s.queueNamed(ctx, queue.Name)
	if err != nil {
		return sluice.Queue{}, err
	}
	same := before.Settings
	same.Paused, same.PausedUntil = queue.Settings.Paused, queue.Settings.PausedUntil
	moved := before.Settings.Paused != queue.Settings.Paused
	if before.Version == 0 || before.Version != queue.Version || same != queue.Settings || !moved || len(before.Scheduled)+len(queue.Scheduled) > 0 || before.Unrecorded() ||
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
	if err == nil && (!changed || saved.Unrecorded()) {
		err = fmt.Errorf("changed %v; the audit was not told of %+v", changed, saved.Settings)
	}
	return saved, err
}

func (s functionStore) queueNamed(ctx context.Context, name string) (sluice.Queue, error) {
	queues, err := s.Queues(ctx, sluice.QueueFilter{})
	for _, q := range queues {
		if q.Name == name {
			return q, err
		}
	}
	return sluice.Queue{}, err
}

// Position checks that the function why explains a job as programs do.
func (s functionStore) Position(ctx context.Context, id sluice.ID) (explain.Position, error) {
	position, err := s.Store.Position(ctx, id)
	if err != nil {
		return position, err
	}
	said, err := explain.Job(ctx, s.Store, id)
	if err != nil {
		return position, err
	}
	rows, err := s.Pool().Query(ctx, "select reason, open, summary, until from sluice.why(job_id => $1::text::uuid)", id.String())
	if err != nil {
		return position, err
	}
	reasons, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (g explain.Reason, err error) {
		var until *time.Time
		err = row.Scan(&g.Name, &g.Open, &g.Summary, &until)
		g.Until = orZero(until)
		return g, err
	})
	if err != nil {
		return position, named(err)
	}
	same := slices.EqualFunc(reasons, said.Reasons, func(a, b explain.Reason) bool {
		return a.Name == b.Name && a.Open == b.Open && a.Summary != "" && a.Until.IsZero() == b.Until.IsZero() && a.Until.Sub(b.Until).Abs() < time.Second
	})
	if !same {
		return position, fmt.Errorf("why says\n%+v\nand programs say\n%+v", reasons, said.Reasons)
	}
	return position, nil
}
