// Package timetest lets time pass for stores in tests: it moves everything that is stored into the past, so that the stores
// themselves go by their clocks alone.
//
// Begin with [AdvanceSQLite] and [AdvancePostgres].
//
// Read next: package storetest, whose rules let time pass.
package timetest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// sqliteColumns are all instants that a SQLite store keeps.
var sqliteColumns = map[string][]string{
	"job": {"created_at", "expires_at"}, "live": {"due_at", "expires_at", "claimed_at", "dispatched_at", "lease_until"},
	"done": {"due_at", "claimed_at", "dispatched_at", "finished_at", "requeued_at"}, "attempt": {"claimed_at", "failed_at"}, "result_cursor": {"upto"},
	"job_key": {"until"}, "flow": {"filled_at"}, "permit": {"claimed_at", "check_at"}, "started": {"at"}, "tenant_queue": {"wake_at", "filled_at"}, "tenant_limit": {"until", "paused_until"}, "named_limit": {"closed_until"}, "limit_key": {"filled_at", "closed_until", "idle_from"}, "limit_lane": {"wake_at"},
	"holder": {"started", "seen"}, "instruction": {"until", "changed_at"}, "lead": {"since", "until"}, "wave_count": {"counted_at"}, "orphan_run": {"cancelled_at", "claimed_at"}, "hold": {"held_at"},
	"stat": {"at"}, "stat_part": {"at"}, "stat_holder": {"at"},
	"schedule": {"next_at"}, "batch": {"created_at", "closed_at", "completed_at", "succeeded_at", "died_at"}, "access_token": {"used_at"}, "dead_note": {"resolved_at"}, "alert_silence": {"created_at", "until"}, "alert_receiver": {"seen"},
}

// AdvanceSQLite lets time pass for a file. The connection must be a free one, which may drop triggers.
func AdvanceSQLite(ctx context.Context, db *sql.DB, d time.Duration) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	err = withoutTriggers(ctx, tx, func() error {
		for table, columns := range sqliteColumns {
			for _, name := range columns {
				if _, err := tx.ExecContext(ctx, "update sluice_"+table+" set "+name+" = "+name+" - ? where "+name+" < 9223372036854775807", d.Microseconds()); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return tx.Commit()
}

// withoutTriggers lets time pass without anything being woken by it: tenant queues must wake by themselves.
func withoutTriggers(ctx context.Context, tx *sql.Tx, do func() error) error {
	rows, err := tx.QueryContext(ctx, "select name, sql from sqlite_master where type = 'trigger' and tbl_name in ('sluice_live', 'sluice_tenant_limit')")
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	made := make(map[string]string)
	for rows.Next() {
		var name, text string
		if err := rows.Scan(&name, &text); err != nil {
			return err
		}
		made[name] = text
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return err
	}
	for name := range made {
		if _, err := tx.ExecContext(ctx, "drop trigger "+name); err != nil {
			return err
		}
	}
	err = do()
	for _, text := range made {
		_, again := tx.ExecContext(ctx, text)
		err = errors.Join(err, again)
	}
	return err
}

// postgresColumns are all instants that a PostgreSQL store keeps.
var postgresColumns = []string{
	"job.created_at", "job.expires_at", "live.due_at", "live.expires_at", "live.claimed_at", "live.lease_until",
	"done.due_at", "done.claimed_at", "done.finished_at", "done.requeued_at", "attempt.claimed_at", "attempt.failed_at", "result_cursor.upto",
	"job_key.until", "flow.filled_at", "flow.permits_from", "permit.claimed_at", "permit.check_at", "started.at", "flow.claimed_at", "flow.counted_from", "flow.counted_since", "flow.wakes_from", "flow.fair_since",
	"tenant_queue.wake_at", "tenant_queue.filled_at", "tenant_queue.counted_from", "tenant_change.at", "tenant_change.due_at", "tenant_limit.until", "tenant_limit.paused_until", "named_limit.closed_until", "limit_key.filled_at", "limit_key.closed_until", "limit_key.idle_from", "limit_lane.wake_at", "limit_change.at", "holder.started", "holder.seen", "instruction.until", "instruction.changed_at", "lead.since", "lead.until",
	"wave_count.counted_at", "hold.held_at", "orphan_run.cancelled_at", "orphan_run.claimed_at", "pace.claimed_at",
	"stat.at", "stat_part.at", "stat_holder.at",
	"schedule.next_at", "batch.created_at", "batch.closed_at", "batch.completed_at", "batch.succeeded_at", "batch.died_at", "access_token.used_at", "dead_note.resolved_at", "alert_silence.created_at", "alert_silence.until", "alert_receiver.seen",
}

// AdvancePostgres returns a statement that moves all instants into the past, in the tables that hold any. Nothing is woken by it,
// because no trigger fires: what sleeps must wake by itself. Only a superuser may run it.
func AdvancePostgres(d time.Duration) string {
	columns := map[string][]string{}
	for _, column := range postgresColumns {
		table, name, _ := strings.Cut(column, ".")
		columns[table] = append(columns[table], name)
	}
	var text strings.Builder
	text.WriteString("do $$ begin perform set_config('session_replication_role', 'replica', true); ")
	for _, table := range slices.Sorted(maps.Keys(columns)) {
		var sets, finite []string
		for _, name := range columns[table] {
			sets = append(sets, fmt.Sprintf("%s = %[1]s - interval '%d microseconds'", name, d.Microseconds()))
			finite = append(finite, "isfinite("+name+")")
		}
		update := fmt.Sprintf("update sluice.%s set %s where %s;", table, strings.Join(sets, ", "), strings.Join(finite, " or "))
		fmt.Fprintf(&text, "if exists (select from sluice.%s) then %s end if; ", table, update)
	}
	return text.String() + "perform set_config('session_replication_role', 'origin', true); end $$"
}
