package faulttest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/demo"
	"github.com/sluice-queue/sluice/limit"
	"github.com/sluice-queue/sluice/store/storetest"
	"github.com/sluice-queue/sluice/upkeep"
)

// hosts are the limit keys of the payments.
var hosts = []string{"a.example", "b.example", "c.example", ""}

// runUpkeep is an upkeep process, which the test kills.
func runUpkeep(ctx context.Context, store sluice.Store) error {
	return upkeep.New(store, upkeep.Options{Interval: 100 * time.Millisecond, Logger: quiet}).Run(ctx)
}

// TestKilledWorkersAndUpkeepLeaveNoJobParkedAndBreakNoLimit kills workers and upkeep while most payments wait for their
// limit keys. It also closes keys. Every payment is posted once, none stays parked, and the audit shows that no key was
// over its limit.
func TestKilledWorkersAndUpkeepLeaveNoJobParkedAndBreakNoLimit(t *testing.T) {
	t.Parallel()
	for name, address := range addresses(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBank(t, address)
			of := "host-" + strings.ToLower(b.queue)
			act := sluice.Act{By: "test"}
			_, err := limit.Change(t.Context(), b.store, of, act, func(l *limit.Limit) error {
				l.Concurrency, l.PerKey, l.ByCost = 4, true, true
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := b.client.ChangeSettings(t.Context(), b.queue, act, func(s *sluice.Settings) error {
				s.Audit, s.Limits = sluice.AuditFull, of
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			roles := []string{"poster", "poster", "upkeep"}
			processes := make([]*exec.Cmd, len(roles))
			for i, role := range roles {
				processes[i] = b.spawn(role)
			}
			for round := range 12 {
				b.payKeyed(40)
				if err := limit.CloseKey(t.Context(), b.store, of, hosts[round%3], 300*time.Millisecond, act); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Duration(rand.IntN(80)) * time.Millisecond)
				victim := round % len(processes)
				signalTo(t, processes[victim], syscall.SIGKILL)
				_ = processes[victim].Wait() // it was killed
				processes[victim] = b.spawn(roles[victim])
			}
			b.settled()
			check := b.balance()
			uses, err := limit.KeyUses(t.Context(), b.store, of, hosts[:3]...)
			if err != nil {
				t.Fatal(err)
			}
			for _, use := range uses {
				if use.InFlight != 0 || use.Waiting != 0 {
					t.Errorf("limit key %s has %d in flight and %d waiting at the end", use.Key, use.InFlight, use.Waiting)
				}
			}
			claims := storetest.KeepsLimit(t.Context(), t, b.store, of, b.queue)
			if claims < check.Payments {
				t.Errorf("the audit has %d claims of %d payments", claims, check.Payments)
			}
			t.Logf("%d payments, %d claims, %d recovered", check.Payments, claims, check.Recoveries)
		})
	}
}

// payKeyed enqueues payments with limit keys and costs.
func (b *bank) payKeyed(n int) {
	b.Helper()
	jobs := make([]sluice.NewJob, n)
	for i := range jobs {
		b.seq++
		payment := demo.Payment{ID: fmt.Sprintf("pay-%06d", b.seq), Payer: "a", Payee: "b", Cents: int64(b.seq), Bank: demo.BankWell}
		var err error
		options := sluice.EnqueueOptions{Key: payment.ID, LimitKey: hosts[rand.IntN(len(hosts))], Cost: 1 + rand.IntN(3)}
		if jobs[i], err = sluice.QueueOf[demo.Payment](b.queue).NewJob(payment, options); err != nil {
			b.Fatal(err)
		}
	}
	if _, err := b.client.EnqueueMany(b.Context(), jobs); err != nil {
		b.Fatal(err)
	}
	b.acked += n
}
