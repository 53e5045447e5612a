package postgres_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/health"
	"github.com/sluice-queue/sluice/internal/pgtest"
	"github.com/sluice-queue/sluice/store/postgres"
	"github.com/sluice-queue/sluice/worker"
)

// TestFailover runs a server with a real standby. It checks what doctor reports about asynchronous and synchronous
// standbys. Then it fails over to the standby, and a worker must go on by itself.
func TestFailover(t *testing.T) {
	t.Parallel()
	// The server waits for commits, as servers in production do. Nothing on the disk matters here.
	primary, err := pgtest.Start(pgtest.Options{Durable: true, Settings: []string{"fsync = off", "full_page_writes = off", "shared_buffers = 32MB"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(primary.Stop)
	if _, err := postgres.Migrate(t.Context(), primary.URL); err != nil {
		t.Fatal(err)
	}
	standby, err := primary.Standby("spare")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(standby.Stop)
	dsn := strings.Replace(primary.URL, primary.Address(), primary.Address()+","+standby.Address(), 1) + "&target_session_attrs=read-write"
	p := &patient{t, &body{primary, primary.URL, openStore(t, primary.URL)}}
	for _, one := range standbyFindings(standby) {
		t.Run(strings.ReplaceAll(one.says, " ", "_"), func(t *testing.T) { p.suffer(t, one) })
	}
	t.Run("promoted", func(t *testing.T) { (&patient{t, p.body}).goesOn(dsn, standby) })
}

// standbyFindings provoke findings about a standby. Each begins where the one before has ended.
func standbyFindings(standby *pgtest.Cluster) []trouble {
	reset := func(p *patient) { p.repairAndReset("durability") }
	return []trouble{
		{check: "durability", severity: health.SeverityNote, says: "standbys", provoke: func(p *patient) {
			p.exec("create role app login", "grant usage on schema sluice to app", "grant select on sluice.migration to app")
			p.as("app")
		}},
		{check: "durability", severity: health.SeverityNote, says: "the standby spare follows asynchronously", provoke: func(p *patient) {
			p.as("postgres")
		}},
		{check: "durability", severity: health.SeverityWarning, says: "synchronous_commit is local although synchronous_standby_names is set", provoke: func(p *patient) {
			p.exec("alter role postgres set synchronous_commit = local")
			p.store.Pool().Reset()
		}, relieve: reset},
		{check: "durability", severity: health.SeverityError, says: "commits wait for 1 synchronous standbys, and 0 are connected", provoke: func(p *patient) {
			if err := standby.Halt(); err != nil {
				p.Fatal(err)
			}
		}, relieve: func(p *patient) {
			if err := standby.Resume(); err != nil {
				p.Fatal(err)
			}
		}},
	}
}

// goesOn stops the server in the middle of a job, and promotes the standby. It waits until this job and an earlier one
// have completed on the standby.
func (p *patient) goesOn(dsn string, standby *pgtest.Cluster) {
	p.exec("alter system set synchronous_standby_names = 'ANY 1 (spare)'", "select pg_reload_conf()")
	p.awaitWell("the standby spare counts for commits") // from here on, no acknowledged write can be lost
	store := openStore(p.T, dsn)
	client := sluice.NewClient(store, sluice.ClientOptions{})
	mail := sluice.QueueOf[int]("mail")
	for n := range 2 {
		if _, err := mail.Enqueue(p.Context(), client, n, sluice.EnqueueOptions{}); err != nil {
			p.Fatal(err)
		}
	}
	begun, ready, done := make(chan struct{}, 2), make(chan struct{}), make(chan *worker.Job[int], 2)
	works := worker.New(store, worker.Options{Slots: 1, Logger: quiet})
	worker.Handle(works, mail, func(_ context.Context, job *worker.Job[int]) error {
		begun <- struct{}{}
		<-ready
		done <- job
		return nil
	}, worker.QueueOptions{})
	ctx, stop := context.WithCancel(p.Context())
	ended := make(chan error, 1)
	go func() { ended <- works.Run(ctx) }()
	<-begun
	if err := p.cluster.Halt(); err != nil {
		p.Fatal(err)
	}
	if err := standby.Promote(); err != nil {
		p.Fatal(err)
	}
	close(ready)
	for range 2 {
		job := <-done
		for until := time.Now().Add(30 * time.Second); ; {
			found, err := store.Job(p.Context(), job.ID)
			if err == nil && found.State == sluice.StateCompleted && found.Attempts == 0 && found.Recoveries == 0 {
				break
			}
			if time.Now().After(until) {
				p.Fatalf("after the failover the job is %+v, %v", found, err)
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	stop()
	if err := <-ended; err != nil {
		p.Error(err)
	}
}

// awaitWell waits until doctor reports that a part of durability is well.
func (p *patient) awaitWell(says string) {
	p.Helper()
	for range 500 {
		for _, f := range p.health(health.Options{}).Findings {
			if f.Check == "durability" && f.Well && strings.Contains(f.What, says) {
				return
			}
		}
	}
	p.Fatalf("doctor never says that %s", says)
}
