package main

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/sluice-queue/sluice/bench/cell"
	"github.com/sluice-queue/sluice/bench/stat"
	"github.com/sluice-queue/sluice/internal/pgtest"
	"github.com/sluice-queue/sluice/internal/temporaltest"
)

// besideTemporal measures a cell that has a Temporal server of its own, whose data are in a PostgreSQL cluster of
// their own: so what Temporal needs is not mixed with what Sluice needs.
func (r *rig) besideTemporal(ctx context.Context, program string, task cell.Task) (result cell.Result, err error) {
	if r.engines == nil {
		if r.engines, err = pgtest.Start(pgtest.Options{Durable: true}); err != nil {
			return nil, err
		}
	}
	database := fmt.Sprintf("temporal_%d", r.made)
	place := strings.Replace(r.engines.URL, "/postgres?", "/"+database+"?", 1)
	server, err := temporaltest.Start(ctx, temporaltest.Options{Store: place})
	if err != nil {
		return nil, err
	}
	defer r.clear(func() error {
		server.Stop()
		for _, name := range []string{database, database + "_visibility"} {
			if err := admin(ctx, r.engines, "drop database "+name+" with (force)"); err != nil {
				return err
			}
		}
		return nil
	})
	task.Temporal = &cell.TemporalServer{Address: server.Address, PID: server.PID, Place: place, ServerPID: r.engines.PID}
	return r.launch(ctx, program, task)
}

// temporalStarts compares a dispatcher with a program that only starts workflows.
func temporalStarts(n sizes, _ map[string]measured) scenario {
	const ours = "Sluice, a dispatcher"
	task := cell.Task{Kind: cell.Starts, System: cell.Sluice, Store: cell.Postgres, Jobs: n.starts}
	against := func(m measured, name string) []float64 {
		return stat.Ratios(m.of(name, cell.StartRate), plainly(m, name))
	}
	return scenario{
		name: "temporal-starts", title: "Temporal: starting workflows", limit: 3,
		method: "Workflows with 1 KB of input are started on a Temporal server that keeps its data in PostgreSQL, and nobody runs them. " +
			"Sluice's dispatcher does it for jobs that wait in a PostgreSQL cluster of their own: it claims, notes the intent, starts and settles, with 8 calls in flight. " +
			"The plain client calls ExecuteWorkflow in a loop, with 8, 16 and 32 calls in flight. They take turns on the same server, four times. " +
			"Client is the CPU of the process that starts (plain: while the plain client does), server that of Sluice's store, engine that of Temporal and its PostgreSQL.",
		entrants: []entrant{{ours, task}},
		headline: []cell.Figure{cell.StartRate, cell.PlainRate(8), cell.PlainRate(16), cell.PlainRate(32), cell.PlainCPU, cell.PlainEngine, cell.ClientCPU, cell.ServerCPU, cell.EngineCPU},
		ratio:    "the rate of starts divided by the plain client's best of the same cell.",
		ratios:   against,
		goals: []goal{
			{"rate of starts against the plain client's best", 0.9, false, "×", func(m measured) []float64 { return against(m, ours) }},
			{"CPU that Sluice and its store add to the plain client's, as a part of Temporal's and its store's", 0.03, true, "", func(m measured) []float64 {
				out := make([]float64, len(m[ours]))
				for i, result := range m[ours] {
					out[i] = (result[cell.ClientCPU] + result[cell.ServerCPU] - result[cell.PlainCPU]) / result[cell.EngineCPU]
				}
				return out
			}},
		},
	}
}

// plainly gives the plain client's best rate in each round.
func plainly(m measured, name string) []float64 {
	var series [][]float64
	for _, flights := range cell.Flights {
		series = append(series, m.of(name, cell.PlainRate(flights)))
	}
	return stat.Best(series, false)
}

// The ways to wait that temporalLife compares.
const (
	asSleepers = "sleeping workflows"
	asDelayed  = "delayed starts"
	asJobs     = "Sluice, at a rate"
	// paymentRate is how many payments a second Sluice lets through: what two cores can bear.
	paymentRate = 20
)

// temporalLife compares ways in which payments can wait for Temporal until they are all due at once.
func temporalLife(n sizes, _ map[string]measured) scenario {
	task := func(way string) cell.Task {
		return cell.Task{Kind: cell.Life, System: way, Store: cell.Postgres, Jobs: n.payments, Rate: paymentRate}
	}
	// How much less the jobs need than the sleepers.
	less := func(figure cell.Figure) func(m measured) []float64 {
		return func(m measured) []float64 { return stat.Ratios(m.of(asSleepers, figure), m.of(asJobs, figure)) }
	}
	return scenario{
		name: "temporal-life", title: "Temporal: payments that wait, and are all due at once",
		limit: 1, // a round takes ten minutes
		method: fmt.Sprintf("%s payments of 1 KB wait for the same instant: as workflows that sleep until then, as workflows that were started with a delay, "+
			"and as jobs that a dispatcher starts at %d a second from then on. A payment is one activity that does nothing. Temporal keeps its data in PostgreSQL, Sluice too, in a cluster of its own. "+
			"Rows, bytes (with indexes), WAL and the CPU to wait are measured when all are waiting, per payment (CPU: per 1,000), of everything that takes part. "+
			"First and drain tell how long after that instant the first and the last payment were made. "+
			"p50, p99 and worst are of an unrelated workflow with its own task queue and worker, started every 200 ms from then until the last payment is made; alone is its p99 while nothing else runs. "+
			"CPU is that of the whole life of 1,000 payments, without the unrelated workflow's.", thousands(n.payments), paymentRate),
		entrants: []entrant{{asSleepers, task(cell.Sleeping)}, {asDelayed, task(cell.Delayed)}, {asJobs, task(cell.Sluice)}},
		headline: []cell.Figure{cell.EngineRows, cell.Bytes, cell.WAL, cell.WaitCPU, cell.FirstDone, cell.Drain, cell.P50, cell.P99, cell.Worst, cell.TotalCPU},
		ratio:    "the bytes of a waiting payment divided by those of a sleeping workflow.",
		ratios: func(m measured, name string) []float64 {
			return m.against(name, []string{asSleepers}, cell.Bytes, true)
		},
		goals: []goal{
			{"rows in Temporal for a waiting job", 0, true, "", figureOf(asJobs, cell.EngineRows)},
			{"bytes of a sleeping workflow against a waiting job's", 20, false, "×", less(cell.Bytes)},
			{"WAL of a sleeping workflow against a waiting job's", 35, false, "×", less(cell.WAL)},
			{"CPU to put a workflow to sleep against that to store a job", 100, false, "×", less(cell.WaitCPU)},
			{"p99 of an unrelated workflow while the payments are made, against that beside sleepers", 0.1, true, "×", func(m measured) []float64 {
				return stat.Ratios(m.of(asJobs, cell.P99), m.of(asSleepers, cell.P99))
			}},
		},
		note: atHalfAMillion,
	}
}

// atHalfAMillion is what the figures of one payment make of 500,000.
func atHalfAMillion(m measured) string {
	const payments = 500_000
	var out strings.Builder
	fmt.Fprintf(&out, "For 500,000 payments, what one needs is taken 500,000 times: rows, bytes and WAL as they are, CPU as CPU/1,000 × 500. "+
		"It was measured to be linear between 1,500 and 8,000. An unrelated workflow waits for (worst / payments measured) × 500,000 beside sleepers; beside a rate, as long as was measured.\n\n"+
		"| 500,000 payments | rows in Temporal | bytes | WAL | CPU to wait | CPU of the whole life |\n|:--|--:|--:|--:|--:|--:|\n")
	for _, way := range []string{asSleepers, asDelayed, asJobs} {
		of := func(figure cell.Figure) float64 { return stat.Median(m.of(way, figure)) }
		if math.IsNaN(of(cell.Bytes)) {
			continue // the cell failed, which is told above
		}
		fmt.Fprintf(&out, "| %s | %s | %.1f GB | %.1f GB | %.0f s | %.0f s |\n", way, thousands(int(of(cell.EngineRows)*payments)),
			of(cell.Bytes)*payments/1e9, of(cell.WAL)*payments/1e9, of(cell.WaitCPU)/1e3*payments/1e3, of(cell.TotalCPU)/1e3*payments/1e3)
	}
	return out.String()
}
