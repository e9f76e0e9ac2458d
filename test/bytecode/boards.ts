// Every board of boards/ in one program, so that it compiles only when all of them are good.
import { pins as adafruit } from "@dsboard/adafruit_feather_esp32_s3"
import { pins as devkitC } from "@dsboard/espressif_esp32s3_devkitc_1"
import { pins as devkitC10 } from "@dsboard/espressif_esp32s3_devkitc_1_v10"
import { pins as devkitM } from "@dsboard/espressif_esp32c3_devkitm_1"
import { pins as lolin } from "@dsboard/lolin_c3_mini"
import { pins as atom } from "@dsboard/m5stack_atoms3_lite"
import { pins as xiao } from "@dsboard/seeed_xiao_esp32s3"

for (const pin of [
    adafruit.D5,
    devkitC.P4,
    devkitC10.P4,
    devkitM.P4,
    lolin.MOSI,
    atom.G6,
    xiao.A0_D0,
])
    console.log(pin.gpio)
