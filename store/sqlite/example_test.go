package sqlite_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/store/sqlite"
	"github.com/sluice-queue/sluice/upkeep"
	"github.com/sluice-queue/sluice/worker"
)

type order struct {
	Number int `json:"number"`
}

var orders = sluice.QueueOf[order]("orders")

func openExample() (*sqlite.Store, func()) {
	folder, err := os.MkdirTemp("", "sluice-example-")
	if err != nil {
		panic(err)
	}
	store, err := sqlite.Open(context.Background(), filepath.Join(folder, "jobs.db"), sqlite.Options{Migrate: true})
	if err != nil {
		panic(err)
	}
	return store, func() {
		_ = store.Close()
		_ = os.RemoveAll(folder)
	}
}

// A whole program: a store in a file, a producer, a worker, and upkeep beside it.
func Example() {
	store, closeStore := openExample()
	defer closeStore()
	ctx, stop := context.WithCancel(context.Background())
	client := sluice.NewClient(store, sluice.ClientOptions{})
	quiet := slog.New(slog.DiscardHandler)

	w := worker.New(store, worker.Options{Slots: 8, Logger: quiet})
	worker.Handle(w, orders, func(ctx context.Context, job *worker.Job[order]) error {
		fmt.Println("order", job.Payload.Number)
		stop() // drains after the first
		return nil
	}, worker.QueueOptions{})
	go func() { _ = upkeep.New(store, upkeep.Options{Logger: quiet}).Run(ctx) }()

	if _, err := orders.Enqueue(ctx, client, order{42}, sluice.EnqueueOptions{}); err != nil {
		fmt.Println(err)
	}
	fmt.Println("drained:", w.Run(ctx))
	// Output:
	// order 42
	// drained: <nil>
}

// The job exists if and only if the caller's own transaction commits.
func ExampleStore_InTx() {
	store, closeStore := openExample()
	defer closeStore()
	ctx := context.Background()
	client := sluice.NewClient(store, sluice.ClientOptions{})
	if _, err := store.DB().ExecContext(ctx, "create table orders (number integer)"); err != nil {
		fmt.Println(err)
	}

	place := func(number int, commit bool) {
		tx, err := store.DB().BeginTx(ctx, nil)
		if err != nil {
			fmt.Println(err)
			return
		}
		defer func() { _ = tx.Rollback() }()
		if _, err := tx.ExecContext(ctx, "insert into orders values (?)", number); err != nil {
			fmt.Println(err)
		}
		if _, err := orders.Enqueue(ctx, client.Within(store.InTx(tx)), order{number}, sluice.EnqueueOptions{}); err != nil {
			fmt.Println(err)
		}
		if commit {
			_ = tx.Commit()
		}
	}
	place(1, false)
	place(2, true)
	depth, _ := client.Depth(ctx, orders.Name())
	fmt.Println("jobs:", depth.Ready)
	// Output: jobs: 1
}

// The effect of a job and its completion commit together. A worker that dies in between leaves neither. A slow worker
// that has lost the job leaves nothing.
func ExampleCompleteTx() {
	store, closeStore := openExample()
	defer closeStore()
	ctx, stop := context.WithCancel(context.Background())
	client := sluice.NewClient(store, sluice.ClientOptions{})
	if _, err := store.DB().ExecContext(ctx, "create table shipped (number integer)"); err != nil {
		fmt.Println(err)
	}
	receipt, err := orders.Enqueue(ctx, client, order{42}, sluice.EnqueueOptions{})
	if err != nil {
		fmt.Println(err)
	}

	w := worker.New(store, worker.Options{Logger: slog.New(slog.DiscardHandler)})
	worker.Handle(w, orders, func(ctx context.Context, job *worker.Job[order]) error {
		defer stop()
		return store.Transact(ctx, func(tx sqlite.Tx) error {
			if _, err := tx.ExecContext(ctx, "insert into shipped values (?)", job.Payload.Number); err != nil {
				return err
			}
			return sqlite.CompleteTx(ctx, tx, job.Claim, map[string]string{"carrier": "bike"})
		})
	}, worker.QueueOptions{})
	if err := w.Run(ctx); err != nil {
		fmt.Println(err)
	}

	looking, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	job, _ := client.Job(looking, receipt.ID)
	fmt.Println(job.State, string(job.Result))
	// Output: completed {"carrier":"bike"}
}

// A row of your own table follows its job, here when a person cancels the job.
func ExampleStore_Follow() {
	store, closeStore := openExample()
	defer closeStore()
	ctx := context.Background()
	client := sluice.NewClient(store, sluice.ClientOptions{})

	_, err := store.DB().ExecContext(ctx, "create table shop_order (id text primary key, state text not null)")
	if err == nil {
		err = store.Follow(ctx, sluice.Follower{
			Name: "orders", Queue: orders.Name(),
			Statement: "update shop_order set state = moved.state where id = moved.id",
		})
	}
	if err != nil {
		panic(err)
	}
	id := sluice.NewID()
	err = store.Transact(ctx, func(tx sqlite.Tx) error {
		if _, err := tx.ExecContext(ctx, "insert into shop_order values (?, 'queued')", id.String()); err != nil {
			return err
		}
		_, err := orders.Enqueue(ctx, client.Within(store.InTx(tx)), order{7}, sluice.EnqueueOptions{ID: id})
		return err
	})
	if err == nil {
		err = client.Cancel(ctx, []sluice.ID{id}, sluice.Act{By: "ada", Reason: "out of stock"})
	}
	if err != nil {
		panic(err)
	}
	var state string
	err = store.DB().QueryRowContext(ctx, "select state from shop_order where id = ?", id.String()).Scan(&state)
	fmt.Println(state, err)
	// Output: cancelled <nil>
}
