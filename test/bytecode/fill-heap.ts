// Fills the heap until the program dies of it; test/host/lab.test.ts compares what the VM then
// says of its heap with what the lab sees from outside.
import * as ds from "@devicescript/core"

const kept: Buffer[] = []
const wait = async () => await ds.sleep(1000000)
wait.start()
wait.start()
await ds.sleep(1000)
for (let bytes = 100; ; ++bytes) {
    kept.push(Buffer.alloc(bytes))
    await ds.sleep(1)
}
