package postgres

import (
	"context"
	_ "embed"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/saving"
	"github.com/sluice-queue/sluice/presence"
)

//go:embed sql/heartbeat.sql
var heartbeatSQL string

// heartbeatAndCheckSQL also reports whether the schema has a step that is too new for a program that knows $11 steps.
var heartbeatAndCheckSQL = strings.TrimSpace(heartbeatSQL) + ",\n    exists (select from sluice.migration where works_from > $11::integer)"

//go:embed sql/instructions.sql
var instructionsSQL string

//go:embed sql/instruction_lock.sql
var instructionLockSQL string

//go:embed sql/instruction_save.sql
var instructionSaveSQL string

//go:embed sql/instruction_forget.sql
var instructionForgetSQL string

//go:embed sql/held_jobs.sql
var heldJobsSQL string

// Heartbeat stores a holder's heartbeat.
func (s *Store) Heartbeat(ctx context.Context, holder presence.Holder) (told presence.Instruction, err error) {
	conditions, err := presence.StoredConditions(holder.Conditions)
	if err != nil {
		return told, err
	}
	queues := holder.Queues
	if queues == nil {
		queues = []string{}
	}
	ctx, done := sign(ctx)
	defer done()
	err = s.callAndCheck(ctx, "heartbeat", func(ctx context.Context, knows int) (newer bool, err error) {
		_, err = list(ctx, s.pool, func(row pgx.CollectableRow) (none struct{}, err error) {
			var text *string
			if err = row.Scan(&text, &newer); err == nil {
				told, err = instructionOf(text)
			}
			return none, err
		}, heartbeatAndCheckSQL, holder.ID, holder.Role, queues, holder.Slots, holder.Busy, holder.Version, conditions, s.tally != nil,
			holder.Protocol, string(holder.Mode), knows)
		return newer, err
	})
	return told, err
}

// instructionOf reads the answer to a heartbeat. Nil: there is no instruction.
func instructionOf(text *string) (presence.Instruction, error) {
	if text == nil {
		return presence.Instruction{}, nil
	}
	var row struct {
		presence.Instruction
		Scope string `json:"scope"`
		Name  string `json:"name"`
	}
	err := json.Unmarshal([]byte(*text), &row)
	told := row.Instruction
	told.Target, told.Until, told.ChangedAt = presence.TargetFromRow(row.Scope, row.Name), told.Until.UTC(), told.ChangedAt.UTC()
	return told, err
}

// SaveInstruction stores an instruction to processes.
func (s *Store) SaveInstruction(ctx context.Context, instruction presence.Instruction, act sluice.Act) (presence.Instruction, error) {
	act = saving.Named(act)
	var newest time.Time // zero: instruction_save.sql makes the instruction the newest
	return save(ctx, s, "save instruction", saving.Instructions(&newest), instruction, act, home[presence.Instruction]{
		stored: func(ctx context.Context, db rowsQuerier) ([]presence.Instruction, error) {
			all, err := list(ctx, db, scanInstruction, instructionsSQL)
			return slices.DeleteFunc(all, func(i presence.Instruction) bool { return i.Target != instruction.Target }), err
		},
		store: func(ctx context.Context, tx pgx.Tx, _ *presence.Instruction) (time.Time, error) {
			if err := exec(ctx, tx, instructionLockSQL); err != nil {
				return time.Time{}, err
			}
			scope, name := instruction.Target.Row()
			return savedRow(ctx, tx, instructionSaveSQL, scope, name, instruction.Version, string(instruction.Wanted), nullTime(instruction.Until),
				act.By, act.Reason, nullUUID(act.ID))
		},
	})
}

func scanInstruction(row pgx.CollectableRow) (presence.Instruction, error) {
	var i presence.Instruction
	var scope, name, wanted string
	var until, changed pgtype.Timestamptz
	var act pgtype.UUID
	err := row.Scan(&scope, &name, &wanted, &until, &changed, &i.ChangedBy, &i.Reason, &i.Version, &act)
	i.Target, i.Wanted, i.Until, i.ChangedAt = presence.TargetFromRow(scope, name), presence.Wanted(wanted), timeOf(until), timeOf(changed)
	i.ActID = idOf(act)
	return i, err
}

// Instructions lists the instructions, newest first.
func (s *Store) Instructions(ctx context.Context) (out []presence.Instruction, err error) {
	err = s.call(ctx, "list instructions", func(ctx context.Context, _ bool) error {
		out, err = list(ctx, s.pool, scanInstruction, instructionsSQL)
		return err
	})
	return out, err
}

// HeldJobs lists the claimed jobs of holders.
func (s *Store) HeldJobs(ctx context.Context, holderIDs []string, limit int) (out []presence.HeldJob, err error) {
	if len(holderIDs) == 0 {
		return nil, nil
	}
	err = s.call(ctx, "list held jobs", func(ctx context.Context, _ bool) error {
		out, err = list(ctx, s.pool, func(row pgx.CollectableRow) (presence.HeldJob, error) {
			var j presence.HeldJob
			var id pgtype.UUID
			var claimed, until pgtype.Timestamptz
			err := row.Scan(&id, &j.Queue, &j.Holder, &claimed, &until)
			j.ID, j.ClaimedAt, j.LeaseUntil = idOf(id), timeOf(claimed), timeOf(until)
			return j, err
		}, heldJobsSQL, holderIDs, limit)
		return err
	})
	return out, err
}

// Deregister removes a holder that ends, and releases its tasks.
func (s *Store) Deregister(ctx context.Context, holderID string) error {
	return s.call(ctx, "deregister", func(ctx context.Context, _ bool) error {
		return exec(ctx, s.pool, leaveSQL, holderID)
	})
}

// Holders lists the processes with a heartbeat in the last hour.
func (s *Store) Holders(ctx context.Context) ([]presence.Holder, error) {
	var out []presence.Holder
	err := s.call(ctx, "list holders", func(ctx context.Context, _ bool) (err error) {
		out, err = list(ctx, s.pool, func(row pgx.CollectableRow) (presence.Holder, error) {
			var h presence.Holder
			var conditions string
			var needs *int
			err := row.Scan(&h.ID, &h.Role, &h.Queues, &h.Slots, &h.Busy, &h.Version, &h.Started, &h.Seen, &conditions, &h.Counts, &h.Protocol, &h.Mode, &needs)
			h.Started, h.Seen, h.Conditions = h.Started.UTC(), h.Seen.UTC(), presence.ConditionsFromRow(conditions)
			if needs != nil {
				h.Conditions = append(h.Conditions, presence.TooOld(*needs))
			}
			return h, err
		}, holdersSQL)
		return err
	})
	return out, err
}
