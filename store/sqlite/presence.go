package sqlite

import (
	"context"
	"database/sql"
	_ "embed"
	"encoding/json"
	"slices"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/saving"
	"github.com/sluice-queue/sluice/presence"
)

//go:embed sql/heartbeat.sql
var heartbeatSQL string

//go:embed sql/instructed.sql
var instructedSQL string

//go:embed sql/instructions.sql
var instructionsSQL string

//go:embed sql/instruction_save.sql
var instructionSaveSQL string

//go:embed sql/instruction_forget.sql
var instructionForgetSQL string

//go:embed sql/held_jobs.sql
var heldJobsSQL string

// Heartbeat stores a holder's heartbeat.
func (s *Store) Heartbeat(ctx context.Context, holder presence.Holder) (presence.Instruction, error) {
	queues := holder.Queues
	if queues == nil {
		queues = []string{}
	}
	text, err := jsonOf(queues)
	if err != nil {
		return presence.Instruction{}, err
	}
	conditions, err := presence.StoredConditions(holder.Conditions)
	if err != nil {
		return presence.Instruction{}, err
	}
	var told []presence.Instruction
	err = s.write(ctx, "beat", func(tx runner, _ bool) (err error) {
		_, err = tx.exec(heartbeatSQL, holder.ID, holder.Role, text, holder.Slots, holder.Busy, holder.Version, now(), conditions, s.tally != nil,
			holder.Protocol, string(holder.Mode))
		if err != nil {
			return err
		}
		told, err = list(tx, scanInstruction, instructedSQL, holder.ID, holder.Version, now())
		return err
	})
	if err != nil || len(told) == 0 {
		return presence.Instruction{}, err
	}
	return told[0], nil
}

func scanInstruction(rows *sql.Rows) (presence.Instruction, error) {
	var i presence.Instruction
	var scope, name, wanted string
	var until *int64
	var changed int64
	var act []byte
	err := rows.Scan(&scope, &name, &wanted, &until, &changed, &i.ChangedBy, &i.Reason, &i.Version, &act)
	i.Target, i.Wanted, i.Until, i.ChangedAt = presence.TargetFromRow(scope, name), presence.Wanted(wanted), timeOf(until), timeOf(&changed)
	copy(i.ActID[:], act)
	return i, err
}

// SaveInstruction stores an instruction to processes.
func (s *Store) SaveInstruction(ctx context.Context, instruction presence.Instruction, act sluice.Act) (presence.Instruction, error) {
	var newest time.Time
	return save(ctx, s, "save instruction", saving.Instructions(&newest), instruction, act, home[presence.Instruction]{
		stored: func(tx runner) ([]presence.Instruction, error) {
			all, err := list(tx, scanInstruction, instructionsSQL)
			if len(all) > 0 {
				newest = all[0].ChangedAt
			}
			return slices.DeleteFunc(all, func(i presence.Instruction) bool { return i.Target != instruction.Target }), err
		},
		store: func(tx runner, next presence.Instruction) error {
			scope, name := next.Target.Row()
			_, err := tx.exec(instructionSaveSQL, scope, name, string(next.Wanted), micros(next.Until), micros(next.ChangedAt), next.ChangedBy,
				next.Reason, next.Version, next.ActID[:])
			return err
		},
	})
}

// Instructions lists the instructions, newest first.
func (s *Store) Instructions(ctx context.Context) (out []presence.Instruction, err error) {
	err = s.read(ctx, "list instructions", func(tx runner) (err error) {
		out, err = list(tx, scanInstruction, instructionsSQL)
		return err
	})
	return out, err
}

// HeldJobs lists the claimed jobs of holders.
func (s *Store) HeldJobs(ctx context.Context, holderIDs []string, limit int) (out []presence.HeldJob, err error) {
	ids, err := jsonOf(holderIDs)
	if err != nil || len(holderIDs) == 0 {
		return nil, err
	}
	err = s.read(ctx, "list held jobs", func(tx runner) (err error) {
		out, err = list(tx, func(rows *sql.Rows) (presence.HeldJob, error) {
			var j presence.HeldJob
			var id []byte
			var claimed, until *int64
			err := rows.Scan(&id, &j.Queue, &j.Holder, &claimed, &until)
			copy(j.ID[:], id)
			j.ClaimedAt, j.LeaseUntil = timeOf(claimed), s.steady.onWall(timeOf(until))
			return j, err
		}, heldJobsSQL, ids, limit)
		return err
	})
	return out, err
}

// Deregister removes a holder that ends, and releases its tasks.
func (s *Store) Deregister(ctx context.Context, holderID string) error {
	return s.write(ctx, "leave", func(tx runner, _ bool) error {
		if _, err := tx.exec(leadLeaveSQL, holderID); err != nil {
			return err
		}
		_, err := tx.exec(leaveSQL, holderID)
		return err
	})
}

// Holders lists the processes with a heartbeat in the last hour.
func (s *Store) Holders(ctx context.Context) ([]presence.Holder, error) {
	var out []presence.Holder
	err := s.read(ctx, "list holders", func(tx runner) (err error) {
		out, err = list(tx, func(rows *sql.Rows) (presence.Holder, error) {
			var h presence.Holder
			var queues, conditions string
			var started, seen int64
			var needs *int
			if err := rows.Scan(&h.ID, &h.Role, &queues, &h.Slots, &h.Busy, &h.Version, &started, &seen, &conditions, &h.Counts, &h.Protocol, &h.Mode, &needs); err != nil {
				return h, err
			}
			h.Started, h.Seen, h.Conditions = timeOf(&started), timeOf(&seen), presence.ConditionsFromRow(conditions)
			if needs != nil {
				h.Conditions = append(h.Conditions, presence.TooOld(*needs))
			}
			return h, json.Unmarshal([]byte(queues), &h.Queues)
		}, holdersSQL, now()-time.Hour.Microseconds())
		return err
	})
	return out, err
}
