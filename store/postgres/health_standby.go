package postgres

import (
	"context"
	_ "embed"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/sluice-queue/sluice/health"
	"github.com/sluice-queue/sluice/internal/checkup"
)

//go:embed sql/health_standbys.sql
var healthStandbysSQL string

// standbyRow is a standby of the server. SyncState is empty if this role must not see it.
type standbyRow struct {
	Name, SyncState string
	// Behind is in bytes of the log.
	Behind int64
}

// has reports whether a commit that waits for standbys may wait for this one.
func (r standbyRow) has() bool { return r.SyncState == "sync" || r.SyncState == "quorum" }

// standbysNeeded matches the number of standbys for which synchronous_standby_names makes a commit wait.
var standbysNeeded = regexp.MustCompile(`(?i)^\s*(?:first\s+|any\s+)?(\d+)\s*\(`)

// standbys reports what a failover to each standby would lose.
func (c *examination) standbys(ctx context.Context) error {
	rows, err := rowsOf[standbyRow](ctx, c.store.pool, healthStandbysSQL)
	if err != nil || c.on.Standby {
		return err
	}
	if !c.on.SeesAll && (len(rows) > 0 || c.on.SynchronousStandbys != "") {
		c.Find(health.SeverityNote, "durability", "what a failover loses is not known: the role "+c.on.Role+" may not see the standbys",
			"a standby that is behind lacks jobs that were acknowledged", "grant pg_monitor to "+name(c.on.Role))
		return nil
	}
	switch {
	case c.waits():
		c.synchronous(rows)
	case c.on.SynchronousStandbys != "":
		c.Find(health.SeverityWarning, "durability", "synchronous_commit is "+c.on.SynchronousCommit+" although synchronous_standby_names is set",
			"commits do not wait for a standby: a failover loses jobs that were acknowledged in the last moments",
			c.reset("synchronous_commit", "on", c.on.SynchronousCommitSource))
	}
	for _, row := range rows {
		c.followed(row)
	}
	return nil
}

// waits reports whether commits wait for standbys.
func (c *examination) waits() bool {
	return c.on.SynchronousStandbys != "" && c.on.SynchronousCommit != "off" && c.on.SynchronousCommit != "local"
}

// synchronous finds that commits wait for standbys that are not connected.
func (c *examination) synchronous(rows []standbyRow) {
	needed, connected := 1, 0
	if found := standbysNeeded.FindStringSubmatch(c.on.SynchronousStandbys); found != nil {
		needed, _ = strconv.Atoi(found[1]) // only digits
	}
	for _, row := range rows {
		if row.has() {
			connected++
		}
	}
	if connected < needed {
		c.Find(health.SeverityError, "durability",
			fmt.Sprintf("commits wait for %d synchronous standbys, and %d are connected (synchronous_standby_names = %s)", needed, connected, literal(c.on.SynchronousStandbys)),
			"nothing can be enqueued, claimed or settled until a standby connects",
			"start the standby; or go on without it, and lose acknowledged jobs if this server fails: alter system set synchronous_standby_names = ''; select pg_reload_conf()")
	}
}

// followed reports the effect of one standby on acknowledged jobs.
func (c *examination) followed(row standbyRow) {
	who := "the standby " + brief(row.Name)
	switch {
	case row.SyncState == "quorum" && c.waits():
		c.Well("durability", "%s counts for commits; a failover must choose the standby that is furthest", who)
	case row.SyncState == "sync" && c.waits():
		c.Well("durability", "%s has every commit before it is acknowledged", who)
	default:
		c.Find(health.SeverityNote, "durability", fmt.Sprintf("%s follows asynchronously, %s behind", who, checkup.Bytes(float64(row.Behind))),
			"a failover to it loses jobs that were acknowledged in the last moments, and runs those again that ended in them",
			"nothing if that may be, or let commits wait for it: alter system set synchronous_standby_names = "+
				literal(c.withStandby(row.Name))+"; select pg_reload_conf()")
	}
}

// withStandby returns synchronous_standby_names with one more standby. The setting must be a plain list.
func (c *examination) withStandby(standby string) string {
	if c.on.SynchronousStandbys == "" {
		return "ANY 1 (" + name(standby) + ")"
	}
	if before, found := strings.CutSuffix(strings.TrimSpace(c.on.SynchronousStandbys), ")"); found {
		return before + ", " + name(standby) + ")"
	}
	return c.on.SynchronousStandbys + ", " + name(standby)
}
