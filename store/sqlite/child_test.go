package sqlite_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/store/sqlite"
)

// childVariable names the file on which a child process of this test program works.
const childVariable = "SLUICE_TEST_SQLITE_CHILD"

// child enqueues a job for each line that it reads, and prints the result.
func child(path string) int {
	ctx := context.Background()
	store, err := sqlite.Open(ctx, path, sqlite.Options{Migrate: true})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	client := sluice.NewClient(store, sluice.ClientOptions{})
	fmt.Println("open")
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		_, err := client.Enqueue(ctx, sluice.NewJob{Queue: "q", Payload: []byte(`{}`)})
		switch {
		case err == nil:
			fmt.Println("ok")
		case errors.Is(err, sqlite.ErrFileReplaced) && errors.Is(err, sluice.ErrUnavailable):
			fmt.Println("refused")
		default:
			fmt.Println(err)
		}
	}
	return 0
}
