package faulttest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/demo"
)

func TestKilledWorkersKeepTheOrder(t *testing.T) {
	t.Parallel()
	for name, address := range addresses(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seed := uint64(time.Now().UnixNano())
			t.Logf("seed %d", seed)
			random := rand.New(rand.NewPCG(seed, 0))
			b := newBank(t, address)
			_, err := b.client.ChangeSettings(t.Context(), b.queue, sluice.Act{By: "test"}, func(s *sluice.Settings) error {
				s.Audit = sluice.AuditFull
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			b.tend()
			accounts := make([][]sluice.ID, 8)
			first, second := b.spawn("poster"), b.spawn("poster")
			for range 8 {
				b.payInOrder(accounts, 3)
				time.Sleep(time.Duration(random.IntN(100)) * time.Millisecond)
				signalTo(t, first, syscall.SIGKILL)
				_ = first.Wait() // it was killed
				first, second = second, b.spawn("poster")
			}
			b.settled()
			b.balance()
			for _, ids := range accounts {
				b.ranInOrder(ids)
			}
		})
	}
}

// payInOrder enqueues some payments for each account, with the account as order key.
func (b *bank) payInOrder(accounts [][]sluice.ID, each int) {
	b.Helper()
	var jobs []sluice.NewJob
	for range each {
		for account := range accounts {
			b.seq++
			payment := demo.Payment{ID: fmt.Sprintf("pay-%06d", b.seq), Payer: "a", Payee: "b", Cents: int64(b.seq), Bank: demo.BankWell}
			job, err := sluice.QueueOf[demo.Payment](b.queue).NewJob(payment, sluice.EnqueueOptions{ID: sluice.NewID(), Key: payment.ID, OrderKey: fmt.Sprint(account)})
			if err != nil {
				b.Fatal(err)
			}
			jobs, accounts[account] = append(jobs, job), append(accounts[account], job.ID)
		}
	}
	if _, err := b.client.EnqueueMany(b.Context(), jobs); err != nil {
		b.Fatal(err)
	}
	b.acked += len(jobs)
}

// ranInOrder replays the audit. It checks that one job of an order was claimed at a time, and each after the jobs
// before it had ended.
func (b *bank) ranInOrder(ids []sluice.ID) {
	b.Helper()
	place := make(map[sluice.ID]int)
	var story []sluice.AuditEntry
	for i, id := range ids {
		place[id] = i
		entries, err := b.client.Audit(b.Context(), sluice.AuditFilter{JobID: id, Limit: 1000})
		if err != nil {
			b.Fatal(err)
		}
		story = append(story, entries...)
	}
	slices.SortFunc(story, func(x, y sluice.AuditEntry) int { return int(x.Seq - y.Seq) })
	ended, running := 0, -1
	for _, entry := range story {
		switch {
		case entry.Event == sluice.EventClaim && (running >= 0 || place[entry.JobID] != ended):
			b.Fatalf("payment %d was claimed when %d had ended, and %d ran", place[entry.JobID], ended, running)
		case entry.Event == sluice.EventClaim:
			running = place[entry.JobID]
		case entry.From == sluice.StateClaimed && entry.To != sluice.StateClaimed:
			running = -1
		}
		if entry.To.Finished() && !entry.From.Finished() {
			ended++
		}
	}
	if ended != len(ids) {
		b.Errorf("%d of %d payments ended", ended, len(ids))
	}
}
