package postgres

import (
	"context"
	_ "embed"
	"fmt"
	"strings"
	"time"

	"github.com/sluice-queue/sluice/health"
	"github.com/sluice-queue/sluice/internal/checkup"
)

//go:embed sql/health_transactions.sql
var healthTransactionsSQL string

//go:embed sql/health_held.sql
var healthHeldSQL string

// maxTold is how many culprits of one kind are named.
const maxTold = 5

// whyOld is the effect of an old transaction.
const whyOld = "while it is open, no row that died since can be removed from any table of the database"

type transactionRow struct {
	PID         int32
	Role        string
	Application string
	Address     string
	State       string
	Since       time.Time
	Age         float64
	HoldsBack   bool
	Query       string
}

// transactions finds transactions that have been open for long.
func (c *examination) transactions(ctx context.Context) error {
	rows, err := rowsOf[transactionRow](ctx, c.store.pool, healthTransactionsSQL, maxTold)
	if err != nil {
		return err
	}
	oldest := 0.0
	if len(rows) > 0 {
		oldest = max(rows[0].Age, 0)
	}
	c.Figure("oldest_transaction_seconds", oldest, "seconds")
	if c.judge("transaction", oldest) == "" {
		c.Well("transaction", "none is older than %s", checkup.Span(c.store.checks["transaction"].Warning))
		return nil
	}
	for _, t := range rows {
		if severity := c.judge("transaction", t.Age); severity != "" {
			c.Find(severity, "transaction", t.text(), t.why(), fmt.Sprintf("select pg_terminate_backend(%d)", t.PID))
		}
	}
	return nil
}

func (t transactionRow) text() string {
	text := fmt.Sprintf("open for %s, since %s: pid %d of %s", checkup.Span(t.Age), t.Since.UTC().Format(time.RFC3339), t.PID, t.Role)
	if t.Application != "" {
		text += " (" + brief(t.Application) + ")"
	}
	if t.Address != "" {
		text += " at " + t.Address
	}
	return text + ", " + t.State + ": " + statement(t.Query)
}

func (t transactionRow) why() string {
	if t.HoldsBack {
		return whyOld
	}
	return "it holds its locks and its connection; once it reads or writes again, no row that died since can be removed"
}

type heldRow struct {
	Kind         string
	Name         string
	Seconds      float64
	Transactions int64
	WALBytes     int64 `db:"wal_bytes"`
	Active       bool
	Owner        string
}

// held finds objects other than sessions that hold back vacuum or keep the log.
func (c *examination) held(ctx context.Context) error {
	rows, err := rowsOf[heldRow](ctx, c.store.pool, healthHeldSQL, 50)
	if err != nil {
		return err
	}
	most := map[string]float64{}
	for _, h := range rows {
		c.countsOf(h, most)
		switch h.Kind {
		case "prepared":
			c.preparedOne(h)
		case "slot":
			c.slot(h)
		case "standby":
			c.standby(h)
		}
	}
	c.Figure("prepared_transaction_seconds", most["prepared"], "seconds")
	c.Figure("standby_xmin_age", most["standby"], "transactions")
	return nil
}

func (c *examination) countsOf(h heldRow, most map[string]float64) {
	switch h.Kind {
	case "prepared":
		most[h.Kind] = max(most[h.Kind], h.Seconds)
	case "standby":
		most[h.Kind] = max(most[h.Kind], float64(h.Transactions))
	case "slot":
		c.MetricOf("slot_wal_bytes", "slot", h.Name, float64(h.WALBytes), "bytes")
	}
}

func (c *examination) preparedOne(h heldRow) {
	if severity := c.judge("prepared", h.Seconds); severity != "" {
		c.Find(severity, "prepared", fmt.Sprintf("%s of %s has been prepared for %s, and nobody ended it", brief(h.Name), h.Owner, checkup.Span(h.Seconds)), whyOld,
			"rollback prepared "+literal(h.Name)+"; or, if the others have committed: commit prepared "+literal(h.Name))
	}
}

func (c *examination) slot(h heldRow) {
	mend := "start whoever reads it, or, if it is not needed any more: select pg_drop_replication_slot(" + literal(h.Name) + ")"
	severity := c.judge("slot", float64(h.WALBytes))
	switch {
	case severity != "":
		c.Find(severity, "slot", fmt.Sprintf("the replication slot %s keeps %s of the log", h.Name, checkup.Bytes(float64(h.WALBytes))),
			"the log stays until it is read, and fills the disk", mend)
	case !h.Active && h.Transactions > 0:
		c.Find(health.SeverityWarning, "slot", fmt.Sprintf("the replication slot %s is not read by anybody, and holds back what died in the last %d transactions", h.Name, h.Transactions),
			"rows that died since cannot be removed", mend)
	}
}

func (c *examination) standby(h heldRow) {
	if severity := c.judge("standby", float64(h.Transactions)); severity != "" {
		c.Find(severity, "standby", fmt.Sprintf("the standby %s still reads what was there %d transactions ago (hot_standby_feedback)", brief(h.Name), h.Transactions),
			"rows that died since cannot be removed here",
			"end the long query on the standby, or there: alter system set hot_standby_feedback = off; select pg_reload_conf()")
	}
}

// literal quotes a text for a statement.
func literal(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }
