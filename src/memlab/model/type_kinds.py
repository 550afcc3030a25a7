"""What kind of model a type is that predicts no next token: an encoder, a vision model, ...

The types are those of transformers, sorted by its own tables of tasks (tools/type_kinds.py writes
them below the mark). A config says its kind itself where it names an architecture: that is
memlab.model.kind. Long by its table alone.

Source      transformers 5.23: models/auto/modeling_auto.py, configuration_auto.py
"""

from __future__ import annotations

from . import kind as said

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

ENCODER, ENCODER_DECODER, PAIR = "encoder", "encoder-decoder", "pair"
VISION, AUDIO, SERIES, RETRIEVAL = "vision", "audio", "time series", "retrieval"
PART, OTHER = "part", "other"
MARK = "# -- written by tools/type_kinds.py"
# As a sentence names them.
KINDS: dict[str, str] = {
    ENCODER: said.ENCODER,
    ENCODER_DECODER: said.ENCODER_DECODER,
    PAIR: "a dual encoder of texts and of images or audio, like CLIP",
    VISION: "a vision model",
    AUDIO: "an audio model",
    SERIES: "a time series model",
    RETRIEVAL: "a retrieval model",
    PART: "a part of a larger model, whose whole config.json is needed",
    OTHER: said.FOR_ANOTHER,
}


def check(config: Mapping[str, Any]) -> None:
    """Refuse a config of another kind, by its type and by what it says itself.

    An encoder's causal form is one that says is_decoder, or names a causal architecture.

    Raises      memlab.model.kind.WrongKind
    """
    found = kind_of(config.get("model_type"))
    if found and not said.decodes(config):
        raise said.wrong(said.named(config) or config.get("model_type"), KINDS[found])
    said.check(config)


def kind_of(model_type: Any) -> str:
    """The kind of a type; nothing of one that predicts the next token, or that is not known."""
    for kind in TYPES:
        if model_type in TYPES[kind].split():
            return kind
    return ""


# -- written by tools/type_kinds.py
TYPES = {
    "encoder": """
    albert bert big_bird camembert canine convbert data2vec-text deberta deberta-v2 distilbert
    electra ernie esm esmc eurobert flaubert fnet funnel gte ibert jina_embeddings_v3 layoutlm
    layoutlmv2 layoutlmv3 lilt longformer luke lxmert markuplm megatron-bert mobilebert
    modernbert modernvbert mpnet mra neomme nomic_bert nystromformer perceiver reformer rembert
    roberta roberta-prelayernorm roc_bert roformer splinter squeezebert tapas ultrabert
    ultravbert xlm-roberta xlm-roberta-xl xmod yoso
    """,
    "encoder-decoder": """
    autoformer bart bigbird_pegasus blenderbot blenderbot-small canary canary_decoder cohere_asr
    conditional_detr d_fine dab-detr deformable_detr deimv2 detr dia dia_decoder encoder-decoder
    fastspeech2_conformer florence2 fsmt grounding-dino informer led longt5 m2m_100 marian mbart
    mm-grounding-dino moonshine moonshine_streaming mt5 musicgen musicgen_melody mvp
    nemotron3_5_asr nemotron_asr_streaming nllb-moe omdet-turbo parakeet_rnnt parakeet_tdt
    pegasus pegasus_x pix2struct plbart pop2piano pp_doclayout_v2 pp_doclayout_v3 pp_doclayout_v4
    pp_formulanet pp_formulanet_text prophetnet rag rt_detr rt_detr_v2 seamless_m4t
    seamless_m4t_v2 speech-encoder-decoder speech_to_text speecht5 switch_transformers t5 t5gemma
    t5gemma2 table-transformer time_series_transformer udop umt5 vision-encoder-decoder whisper
    """,
    "pair": """
    aimv2 align altclip bridgetower chinese_clip clap clip clipseg groupvit metaclip_2 pe_audio
    pe_audio_video pe_video siglip siglip2 t5gemma2_encoder tipsv2 videoprism
    vision-text-dual-encoder xclip
    """,
    "vision": """
    aimv2_vision_model beit bit chmv2 convnext convnextv2 cvt data2vec-vision deit depth_anything
    depth_pro dinat dinov2 dinov2_with_registers dinov3_convnext dinov3_vit donut-swin dpt
    edgetam edgetam_video efficientloftr efficientnet eomt eomt_dinov3 focalnet glpn hgnet_v2
    hiera ijepa imagegpt levit lightglue lw_detr lw_detr_vit mask2former maskformer
    maskformer-swin mlcd mlcd_vision_model mobilenet_v1 mobilenet_v2 mobilevit mobilevitv2
    oneformer owlv2 owlvit pixio poolformer pp_lcnet pp_lcnet_v3 pp_lcnet_v4 pp_ocrv5_mobile_det
    pp_ocrv5_mobile_rec pp_ocrv5_server_det pp_ocrv5_server_rec pp_ocrv6_medium_det
    pp_ocrv6_small_det pp_ocrv6_small_rec pp_ocrv6_tiny_rec prompt_depth_anything pvt pvt_v2
    regnet resnet rf_detr rf_detr_dinov2 rt_detr_resnet sam sam2 sam2_video sam3_tracker
    sam3_video sam_hq sapiens2 segformer siglip_vision_model slanet slanext superglue superpoint
    swiftformer swin swin2sr swinv2 textnet timesformer timm_backbone timm_wrapper tipsv2_dpt
    tipsv2_vision_model upernet uvdoc_backbone videomae videomt videoprism_vision_model vilt vit
    vit_mae vit_msn vitdet vitmatte vitpose vitpose_backbone vivit vjepa2 yolos zoedepth
    """,
    "audio": """
    audio-spectrogram-transformer bark csm data2vec-audio fastspeech2_conformer_with_hifigan
    gradium_phonon_tts granite_speech5_ctc higgs_audio_v2 hubert lasr_ctc nemotron3_diarization
    parakeet_ctc pocket_tts sew sew-d unispeech unispeech-sat vits wav2vec2 wav2vec2-bert
    wav2vec2-conformer wavlm
    """,
    "time series": """
    patchtsmixer patchtst timesfm timesfm2_5
    """,
    "retrieval": """
    colmodernvbert colpali
    """,
    "part": """
    aimv2_text_model align_text_model align_vision_model altclip_text_model altclip_vision_model
    audioflamingo3_encoder blip_2_qformer blip_2_vision_model blip_text_model blip_vision_model
    blt_global_transformer blt_local_decoder blt_local_encoder blt_patcher bridgetower_text_model
    bridgetower_vision_model chameleon_vqgan chinese_clip_text_model chinese_clip_vision_model
    clap_audio_model clap_text_model clip_text_model clip_vision_model clipseg_text_model
    clipseg_vision_model clvp_decoder clvp_encoder cohere_compass_vision cosmos3_edge_text
    cosmos3_edge_vision csm_depth_decoder_model dac deepseek_ocr2_encoder
    deepseek_ocr2_sam_vision_model deepseek_ocr2_text deepseek_ocr2_vision dia_encoder
    diffusion_gemma_text dots3_note_audio_encoder dots3_note_vision_encoder edgetam_mask_decoder
    edgetam_prompt_encoder edgetam_video_mask_decoder edgetam_video_prompt_encoder
    edgetam_vision_model embedding_gemma2_text emu3_text_model emu3_vqgan encodec
    ernie4_5_vl_moe_text ernie4_5_vl_moe_vision exaone4_5_vision fastspeech2_conformer_hifigan
    flava_image_codebook flava_image_model flava_multimodal_model flava_text_model
    florence_vision fun_asr_nano_encoder gemma3n_audio gemma3n_vision gemma4_vision
    git_vision_model glm4v_moe_text glm4v_moe_vision glm4v_text glm4v_vision glm5_next_text
    glm5_next_vision glm_image_text glm_image_vision glm_image_vqmodel glm_ocr_text
    glm_ocr_vision glmasr_encoder got_ocr2_vision granite4_vision_text granite_docling_text
    granite_docling_vision granite_speech5_encoder granite_speech_encoder
    granite_speech_plus_encoder groupvit_text_model groupvit_vision_model hunyuan_vl_text
    hunyuan_vl_vision idefics2_perceiver idefics2_vision idefics3_vision idefics_perciever
    idefics_vision inkling2_vision inkling_audio inkling_vision instructblip_qformer
    instructblip_vision_model instructblipvideo_qformer instructblipvideo_vision_model
    internvl_vision janus_vision_model janus_vqgan kimi_k25_vision kosmos_2_5_text_model
    kosmos_2_5_vision_model kosmos_2_text_model kosmos_2_vision_model lasr_encoder lfm3_vl_vision
    llama4_vision_model metaclip_2_text_model metaclip_2_vision_model mimi minicpm_ocr_vision
    minicpmv4_6_vision minicpmv4_7_vision minimax_m3_vl_vision mistral_large4_text
    mllama_text_model mllama_vision_model molmo2_adapter molmo2_text molmo2_vision
    moonshine_streaming_encoder moshi_depth moss_transcribe_diarize_audio muse_glimmer_text
    muse_glimmer_vision muse_spark_audio muse_spark_text muse_spark_vision musicgen_decoder
    musicgen_melody_decoder nemotron3_5_transcribe_asr_audio nemotron3_5_transcribe_audio
    nemotron3_5_transcribe_word_timestamp nemotron3_diarization_audio
    nemotron_asr_streaming_encoder ovis2_vision owlv2_text_model owlv2_vision_model
    owlvit_text_model owlvit_vision_model paddleocr_vl_text paddleocr_vl_vision parakeet_encoder
    pe_audio_encoder pe_audio_video_encoder pe_video_encoder phi4_multimodal_audio
    phi4_multimodal_vision pix2struct_text_model pix2struct_vision_model pixtral
    pp_chart2table_vision pp_formulanet_vision qianfan_ocr_vision qwen2_5_omni_audio_encoder
    qwen2_5_omni_bigvgan qwen2_5_omni_dit qwen2_5_omni_talker qwen2_5_omni_text
    qwen2_5_omni_token2wav qwen2_5_omni_vision_encoder qwen2_5_vl_text qwen2_5_vl_vision
    qwen2_audio_encoder qwen2_vl_text qwen2_vl_vision qwen3_5_moe_vision qwen3_5_vision
    qwen3_asr_encoder qwen3_omni_moe_audio_encoder qwen3_omni_moe_text
    qwen3_omni_moe_vision_encoder qwen3_vl_moe_text qwen3_vl_moe_vision qwen3_vl_text
    qwen3_vl_vision qwen4_exp_vision radio sam2_hiera_det_model sam2_mask_decoder
    sam2_prompt_encoder sam2_video_mask_decoder sam2_video_prompt_encoder sam2_vision_model sam3
    sam3_detr_decoder sam3_detr_encoder sam3_geometry_encoder sam3_lite_text_detr_decoder
    sam3_lite_text_detr_encoder sam3_lite_text_geometry_encoder sam3_lite_text_mask_decoder
    sam3_lite_text_text_model sam3_mask_decoder sam3_tracker_mask_decoder
    sam3_tracker_prompt_encoder sam3_tracker_video sam3_tracker_video_mask_decoder
    sam3_tracker_video_prompt_encoder sam3_vision_model sam3_vit_model sam_hq_mask_decoder
    sam_hq_prompt_encoder sam_hq_vision_model sam_mask_decoder sam_prompt_encoder
    sam_vision_model sapiens2_head siglip2_text_model siglip2_vision_model siglip_text_model
    slanext_vision smolvlm_vision step3p5 step3p5_vision t5_gemma_module t5gemma2_decoder
    t5gemma2_text tipsv2_text_model unlimited_ocr_sam_vision_model unlimited_ocr_text
    unlimited_ocr_vision unlimited_ocr_vision_encoder vibevoice_acoustic_tokenizer
    vibevoice_acoustic_tokenizer_encoder vibevoice_diffusion video_llama_3_vision
    videoprism_text_model voxtral_encoder voxtral_realtime_encoder voxtral_realtime_text
    xclip_text_model xclip_vision_model
    """,
    "other": """
    EvollaModel bros clvp colqwen2 decision_transformer dpr embedding_gemma2 esmfold2 flava
    gemma4_audio gemma4_unified_audio gemma4_unified_vision glm_image higgs_audio_v2_tokenizer
    jev layoutxlm mgp-str mimi_decoder mimi_encoder muse_glimmer_assistant neucodec nougat
    openai_privacy_filter pocket_tts_audio_tokenizer pocket_tts_audio_tokenizer_decoder
    pocket_tts_audio_tokenizer_encoder qwen3_omni_moe_talker_code_predictor
    qwen3_omni_moe_talker_text sam3_lite_text seggpt speecht5_hifigan tvp univnet uvdoc
    vibevoice_acoustic_tokenizer_decoder visual_bert xcodec xcodec2
    """,
}
