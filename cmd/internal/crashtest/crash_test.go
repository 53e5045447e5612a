package crashtest

import (
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/sluice-queue/sluice/internal/temporaltest"
)

// TestDispatcherThatDiesAtAnyStepLeavesOneRunForEachJob kills a dispatcher at each step of its first batch. Another
// dispatcher goes on, and upkeep asks Temporal about the jobs of the dead one.
func TestDispatcherThatDiesAtAnyStepLeavesOneRunForEachJob(t *testing.T) {
	t.Parallel()
	for _, step := range []string{never, afterClaim, beforeStart, inBatch, afterStart, afterSettlement} {
		for name, address := range addresses(t) {
			t.Run(step+", "+name, func(t *testing.T) {
				t.Parallel()
				b := newBank(t, address)
				b.enqueue(20)
				first := b.spawn(step)
				if step != never {
					_ = first.Wait() // ends by SIGKILL
				}
				b.tend()
				b.spawn(never)
				b.settled()
				b.onceEach()
			})
		}
	}
}

// kills is the number of times that the test kills a dispatcher.
const kills = 200

// TestDispatchersKilledAtRandomLeaveOneRunForEachJob kills one of two dispatchers at random moments, again and again.
func TestDispatchersKilledAtRandomLeaveOneRunForEachJob(t *testing.T) {
	t.Parallel()
	b := newBank(t, addresses(t)["PostgreSQL"])
	b.killAtRandom(kills)
}

// TestRepliesThatAreLostLeaveOneRunForEachJob cuts the connections to Temporal at random moments. Temporal has often
// done the request, but its reply is lost.
func TestRepliesThatAreLostLeaveOneRunForEachJob(t *testing.T) {
	t.Parallel()
	b := newBank(t, addresses(t)["SQLite"])
	wire := newWire(t, b.engine)
	b.engine = wire.address
	b.tend()
	b.spawn(never)
	random := rand.New(rand.NewPCG(seed(t), 0))
	for range 60 {
		b.enqueue(5)
		time.Sleep(time.Duration(random.IntN(60)) * time.Millisecond)
		wire.cut()
	}
	b.settled()
	b.onceEach()
}

// TestTemporalThatIsKilledAndComesBackHasOneRunForEachJob kills the server in the middle of the work, twice, and
// restarts it on its file. Jobs that fall due meanwhile wait, and lose no attempt.
func TestTemporalThatIsKilledAndComesBackHasOneRunForEachJob(t *testing.T) {
	t.Parallel()
	server, err := temporaltest.Start(t.Context(), temporaltest.Options{Store: filepath.Join(t.TempDir(), "temporal.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	b := newBankAt(t, addresses(t)["SQLite"], server.Address)
	b.tend()
	b.spawn(never)
	for range 2 {
		b.enqueue(20)
		time.Sleep(100 * time.Millisecond) // some runs have begun
		if err := server.Halt(); err != nil {
			t.Fatal(err)
		}
		b.enqueue(20)
		time.Sleep(2 * time.Second) // longer than a lease
		if err := server.Resume(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	b.settled()
	b.onceEach()
}

func (b *bank) killAtRandom(times int) {
	b.Helper()
	if testing.Short() {
		times /= 10
	}
	random := rand.New(rand.NewPCG(seed(b.T), 0))
	b.tend()
	dispatchers := []*exec.Cmd{b.spawn(never), b.spawn(never)}
	for range times {
		b.enqueue(1 + random.IntN(4))
		time.Sleep(time.Duration(random.IntN(80)) * time.Millisecond)
		victim := random.IntN(len(dispatchers))
		if err := dispatchers[victim].Process.Signal(syscall.SIGKILL); err != nil {
			b.Fatal(err)
		}
		_ = dispatchers[victim].Wait() // ends by SIGKILL
		dispatchers[victim] = b.spawn(never)
	}
	b.settled()
	b.onceEach()
}

// seed returns a random seed for a test, and prints it.
func seed(t *testing.T) uint64 {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	return seed
}
