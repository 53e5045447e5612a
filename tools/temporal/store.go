package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"strings"
	"time"

	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/log"
	"go.temporal.io/server/common/persistence/sql/sqlplugin/postgresql"
	"go.temporal.io/server/common/persistence/sql/sqlplugin/sqlite"
	"go.temporal.io/server/tools/common/schema"
	"google.golang.org/protobuf/types/known/durationpb"

	sqliteschema "go.temporal.io/server/schema/sqlite"
	sqltool "go.temporal.io/server/tools/sql"
)

const (
	// memory is the store that is gone when the process ends.
	memory = "memory"

	mainStore       = "main"
	visibilityStore = "visibility"
)

// prepareStore makes the databases, their tables and the namespaces where they are missing, and
// returns how the server reaches them.
func prepareStore(store string, namespaces []namespace, logger log.Logger) (config.Persistence, error) {
	prepare := prepareSQLite
	if strings.HasPrefix(store, "postgres://") || strings.HasPrefix(store, "postgresql://") {
		prepare = preparePostgres
	}
	stores, err := prepare(store, logger)
	if err != nil {
		return stores, err
	}
	return stores, registerNamespaces(stores.DataStores[mainStore].SQL, namespaces)
}

// prepareSQLite keeps everything in memory or in one file.
func prepareSQLite(store string, _ log.Logger) (config.Persistence, error) {
	database := config.SQL{PluginName: sqlite.PluginName, DatabaseName: store}
	if store == memory {
		// The server itself makes the tables in memory.
		database.ConnectAttributes = map[string]string{"mode": "memory", "cache": "shared"}
		return persistence(database, database, 1), nil
	}
	// With a log of its own in front of the file, starts are two to three times as fast.
	database.ConnectAttributes = map[string]string{"mode": "rwc", "journal_mode": "wal", "synchronous": "normal"}
	if _, err := os.Stat(store); errors.Is(err, fs.ErrNotExist) {
		if err := sqliteschema.SetupSchema(&database); err != nil {
			_ = os.Remove(store) // half of the tables is worse than none
			return config.Persistence{}, err
		}
	}
	return persistence(database, database, 1), nil
}

// preparePostgres keeps workflows in the database that the URL names, and what can be searched in
// another one beside it.
func preparePostgres(store string, logger log.Logger) (config.Persistence, error) {
	database, err := postgresConfig(store)
	if err != nil {
		return config.Persistence{}, err
	}
	visibility := database
	visibility.DatabaseName += "_visibility"
	for schemaName, made := range map[string]config.SQL{
		"postgresql/v12/temporal":   database,
		"postgresql/v12/visibility": visibility,
	} {
		if err := makeSchema(made, schemaName, logger); err != nil {
			return config.Persistence{}, fmt.Errorf("database %s: %w", made.DatabaseName, err)
		}
	}
	return persistence(database, visibility, 4), nil
}

func postgresConfig(store string) (config.SQL, error) {
	at, err := url.Parse(store)
	if err != nil {
		// The parser's words would repeat the password.
		return config.SQL{}, errors.New("this is not a URL")
	}
	database := config.SQL{
		PluginName:        postgresql.PluginNamePGX,
		ConnectAddr:       at.Host,
		User:              at.User.Username(),
		DatabaseName:      strings.TrimPrefix(at.Path, "/"),
		ConnectAttributes: map[string]string{},
		MaxConns:          20,
		MaxIdleConns:      20,
		MaxConnLifetime:   time.Hour,
	}
	database.Password, _ = at.User.Password()
	if at.Port() == "" {
		database.ConnectAddr += ":5432"
	}
	if database.DatabaseName == "" {
		return config.SQL{}, errors.New("the URL names no database")
	}
	for key, values := range at.Query() {
		database.ConnectAttributes[key] = values[0]
	}
	return database, nil
}

// makeSchema makes a database and brings its tables to the version of this server.
func makeSchema(database config.SQL, schemaName string, logger log.Logger) error {
	// The second argument: connect to whichever database is there by default.
	create := database
	if err := sqltool.DoCreateDatabase(&create, "", logger); err != nil {
		return err
	}
	conn, err := sqltool.NewConnection(&database, logger)
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := conn.ReadSchemaVersion(); err != nil {
		// Nobody has made tables yet.
		setup := schema.NewSetupSchemaTask(conn, &schema.SetupConfig{InitialVersion: "0.0"}, logger)
		if err := setup.Run(); err != nil {
			return err
		}
	}
	return schema.NewUpdateSchemaTask(conn, &schema.UpdateConfig{SchemaName: schemaName}, logger).Run()
}

func persistence(main, visibility config.SQL, shards int32) config.Persistence {
	return config.Persistence{
		DefaultStore:     mainStore,
		VisibilityStore:  visibilityStore,
		NumHistoryShards: shards,
		DataStores: map[string]config.DataStore{
			mainStore:       {SQL: &main},
			visibilityStore: {SQL: &visibility},
		},
	}
}

// registerNamespaces writes namespaces into the store before the server starts, because the server's
// own call allows no retention below an hour, and tests need one of seconds. One that is there already
// stays as it is.
func registerNamespaces(database *config.SQL, namespaces []namespace) error {
	var wanted []*sqliteschema.NamespaceConfig
	for _, ns := range namespaces {
		made, err := sqliteschema.NewNamespaceConfig(clusterName, ns.name, false, nil)
		if err != nil {
			return fmt.Errorf("namespace %s: %w", ns.name, err)
		}
		made.Detail.Config.Retention = durationpb.New(ns.retention)
		wanted = append(wanted, made)
	}
	// Its package is SQLite's, yet it works on whatever store the configuration names.
	return sqliteschema.CreateNamespaces(database, wanted...)
}

// redacted hides the password of a URL.
func redacted(store string) string {
	at, err := url.Parse(store)
	if err != nil {
		return "that was given"
	}
	return at.Redacted()
}
