// One core's share of a soak.
import { runJob } from "./run"
import { serve } from "./serve"

serve(runJob)
