import { literal } from "./quote";
import type { Block, Connection } from "./snippets";

function authLine(mechanism: string): { module: string; method: string } {
  if (mechanism === "PLAIN") return { module: "plain", method: "AsMechanism" };
  const method = mechanism === "SCRAM-SHA-256" ? "AsSha256Mechanism" : "AsSha512Mechanism";
  return { module: "scram", method };
}

/** Returns a program in Go with franz-go. */
export function goSnippet(connection: Connection): Block[] {
  const { listener, bootstrapServers, username, password, mechanism, topic, caPath } = connection;
  const tls = listener === "SASL_SSL";
  const { module, method } = authLine(mechanism);
  const imports = [
    '"context"',
    ...(tls ? ['"crypto/tls"', '"crypto/x509"'] : []),
    '"fmt"',
    '"log"',
    ...(tls ? ['"os"'] : []),
  ];
  const pool = tls
    ? `	pem, err := os.ReadFile(${literal(caPath)})
	if err != nil {
		log.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
`
    : "";
  const seeds = bootstrapServers.split(",").map(literal).join(", ");
  const code = `package main

import (
	${imports.join("\n\t")}

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/${module}"
)

func main() {
${pool}	ctx, topic := context.Background(), ${literal(topic)}
	auth := ${module}.Auth{User: ${literal(username)}, Pass: ${literal(password)}}
	client, err := kgo.NewClient(
		kgo.SeedBrokers(${seeds}),
		kgo.SASL(auth.${method}()),${tls ? "\n\t\tkgo.DialTLSConfig(&tls.Config{RootCAs: roots})," : ""}
		kgo.ConsumerGroup("go-group"),
		kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
	)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	record := &kgo.Record{Topic: topic, Key: []byte("greeting"), Value: []byte("hello from Go")}
	if err := client.ProduceSync(ctx, record).FirstErr(); err != nil {
		log.Fatal(err)
	}
	for { // Ctrl-C ends it
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			log.Fatal(err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			fmt.Println(r.Partition, r.Offset, string(r.Value))
		})
	}
}
`;
  return [
    { title: "Install", code: "go mod init freshet-client\ngo get github.com/twmb/franz-go" },
    { title: "main.go", code },
    { title: "Run", code: "go mod tidy && go run ." },
  ];
}
