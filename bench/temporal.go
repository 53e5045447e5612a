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

// besideTemporal measures a cell beside its own Temporal server. Temporal's data lie in a separate PostgreSQL cluster,
// because the figures keep Temporal's use apart from Sluice's.
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

// temporalStarts compares a dispatcher with a program that starts workflows and does nothing else.
func temporalStarts(n sizes, _ map[string]measured) scenario {
	const ours = "Sluice, a dispatcher"
	task := cell.Task{Kind: cell.Starts, System: cell.Sluice, Store: cell.Postgres, Jobs: n.starts}
	against := func(m measured, name string) []float64 {
		return stat.Ratios(m.of(name, cell.StartRate), plainly(m, name))
	}
	return scenario{
		name: "temporal-starts", title: "Temporal: starting workflows", limit: 3,
		method: "Temporal, on PostgreSQL, starts workflows that nobody runs. " +
			"Sluice's dispatcher claims jobs from its own PostgreSQL cluster, records the intent, starts and settles, with 8 calls in flight. " +
			"The plain client loops ExecuteWorkflow. They take turns four times. " +
			"Client CPU is the starting process, server CPU Sluice's store, engine CPU Temporal and its PostgreSQL. Plain figures belong to the plain client.",
		entrants: []entrant{{ours, task}},
		headline: []cell.Figure{cell.StartRate, cell.PlainRate(8), cell.PlainRate(16), cell.PlainRate(32), cell.PlainCPU, cell.PlainEngine, cell.ClientCPU, cell.ServerCPU, cell.EngineCPU},
		ratio:    "start rate against the plain client's best in the same cell.",
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

// plainly returns the plain client's best rate of each round.
func plainly(m measured, name string) []float64 {
	var series [][]float64
	for _, flights := range cell.Flights {
		series = append(series, m.of(name, cell.PlainRate(flights)))
	}
	return stat.Best(series, false)
}

// The ways to wait, and the rate of Sluice's way, in temporalLife.
const (
	asSleepers = "sleeping workflows"
	asDelayed  = "delayed starts"
	asJobs     = "Sluice, at a rate"
	// paymentRate is Sluice's rate in payments a second; two cores can sustain it.
	paymentRate = 20
)

// temporalLife compares three ways in which payments wait for Temporal until all fall due at once.
func temporalLife(n sizes, _ map[string]measured) scenario {
	task := func(way string) cell.Task {
		return cell.Task{Kind: cell.Life, System: way, Store: cell.Postgres, Jobs: n.payments, Rate: paymentRate}
	}
	// less divides the sleepers' figure by the jobs'.
	less := func(figure cell.Figure) func(m measured) []float64 {
		return func(m measured) []float64 { return stat.Ratios(m.of(asSleepers, figure), m.of(asJobs, figure)) }
	}
	return scenario{
		name: "temporal-life", title: "Temporal: payments that wait, and are all due at once",
		limit: 1, // a round takes ten minutes
		method: fmt.Sprintf("%s payments wait for one instant: as sleeping workflows, as workflows started with a delay, "+
			"and as jobs that a dispatcher then starts at %d a second. A payment is one empty activity. Temporal and Sluice have a PostgreSQL cluster each. "+
			"Rows, bytes (with indexes), WAL and CPU to wait are per payment (CPU: per 1,000), while all wait. "+
			"First and drain run from that instant to the first and last payment. "+
			"p50, p99, worst and alone (nothing else runs) belong to an unrelated workflow, started every 200 ms. CPU excludes it.",
			thousands(n.payments), paymentRate),
		entrants: []entrant{{asSleepers, task(cell.Sleeping)}, {asDelayed, task(cell.Delayed)}, {asJobs, task(cell.Sluice)}},
		headline: []cell.Figure{cell.EngineRows, cell.Bytes, cell.WAL, cell.WaitCPU, cell.FirstDone, cell.Drain, cell.P50, cell.P99, cell.Worst, cell.TotalCPU},
		ratio:    "bytes of a waiting payment against a sleeping workflow's.",
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

// atHalfAMillion extrapolates the figures of one payment to 500,000.
func atHalfAMillion(m measured) string {
	const payments = 500_000
	var out strings.Builder
	fmt.Fprintf(&out, "The table shows one payment's figures times 500,000; from 1,500 to 8,000 they were linear. "+
		"Beside sleepers, an unrelated workflow waits (worst / payments measured) × 500,000; beside a rate, as measured.\n\n"+
		"| 500,000 payments | rows in Temporal | bytes | WAL | CPU to wait | CPU of the whole life |\n|:--|--:|--:|--:|--:|--:|\n")
	for _, way := range []string{asSleepers, asDelayed, asJobs} {
		of := func(figure cell.Figure) float64 { return stat.Median(m.of(way, figure)) }
		if math.IsNaN(of(cell.Bytes)) {
			continue // the cell failed; the method lists it
		}
		fmt.Fprintf(&out, "| %s | %s | %.1f GB | %.1f GB | %.0f s | %.0f s |\n", way, thousands(int(of(cell.EngineRows)*payments)),
			of(cell.Bytes)*payments/1e9, of(cell.WAL)*payments/1e9, of(cell.WaitCPU)/1e3*payments/1e3, of(cell.TotalCPU)/1e3*payments/1e3)
	}
	return out.String()
}
